"""Sitemaps of any form (XML, index, gzip, plain list, llms.txt) -> the pages they list. Hostile bodies are harmless."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from lxml import etree

from app.core.errors import SitemapError
from app.core.language import vocabulary
from app.core.packed import GZIP, UnreadableGzip, unpacked
from ingestion.crawl.exchange import ADVICE, FORM, Fetched, PageRequest, cannot_be_read, has_login_form
from ingestion.entry import Entry, Listing, Skipped
from ingestion.errors import ConversionError, PageError, PageGone
from ingestion.sources import Source
from ingestion.urls import joined
from ingestion.workers import Workers

if TYPE_CHECKING:
    from ingestion.crawl.fetch import Fetcher

MAX_BYTES = 50 * 1024 * 1024
"""The sitemap protocol's own limit, applied before and after decompression."""

_BARE_AMPERSAND = re.compile(rb"&(?!#?\w{1,32};)")
_END = re.compile(
    rb"</(?:[\w.-]+:)?(?:urlset|sitemapindex)\s*>|<(?:[\w.-]+:)?(?:urlset|sitemapindex)\b[^>]*/>|</html", re.IGNORECASE
)
END = 2000
"""Bytes at the end of a sitemap in which its last tag is looked for."""

_DECLARED = re.compile(rb"""<\?xml[^>]*?\bencoding\s*=\s*["']([\w.:-]+)""")
# entities that the sitemap defines are never expanded: braces make the address invalid
_OWN_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z_][\w.-]*);")
_MARKDOWN_LINK = re.compile(r"\]\(<?([^()<>\s]+)")
_BOM = b"\xef\xbb\xbf"
_STARTS = (b"<?xml", b"<urlset", b"<sitemapindex")
SMALL = 64 << 10
"""Bytes of a sitemap, not packed, that are parsed at once, because starting a process takes longer; and in which a sitemap begins."""


class NotASitemap(Exception):
    """The body isn't a sitemap; the message continues a sentence that starts with its address."""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page as listed, its address absolute and without fragment."""

    url: str
    lastmod: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedSitemap:
    """Contents of one sitemap: pages, further sitemaps, and (address, reason) of invalid addresses.

    `whole` is False when its end is missing, so that it may list more.
    """

    pages: tuple[ListedPage, ...] = ()
    children: tuple[str, ...] = ()
    wrong: tuple[tuple[str, str], ...] = ()
    whole: bool = True


def parse_sitemap(body: bytes, url: str) -> ParsedSitemap:
    """Parses the body; relative addresses start from `url`. Raises `NotASitemap`."""
    text, whole = _unzipped(body)
    text = _from_its_start(text)
    if not text:
        raise NotASitemap("is empty, not a sitemap")
    if text.startswith(b"<") or text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _xml(text, url, whole=whole)
    return _plain(text, url, whole=whole)


def _unzipped(body: bytes) -> tuple[bytes, bool]:
    whole = True
    for _ in range(2):  # a .gz that the server compressed once more
        if not body.startswith(GZIP):
            break
        try:
            body, ended = unpacked(body, MAX_BYTES)
        except UnreadableGzip as error:
            raise NotASitemap(f"isn't readable gzip ({error})") from error
        if len(body) > MAX_BYTES:
            raise NotASitemap(f"is larger than {MAX_BYTES // 2**20} MB unpacked")
        whole = whole and ended
    return body, whole


def _from_its_start(text: bytes) -> bytes:
    """The text without what a server writes before it: byte order marks, notices of PHP."""
    starts = [place for tag in _STARTS if (place := text.find(tag, 0, SMALL)) >= 0]
    return text[min(starts, default=0) :].removeprefix(_BOM).lstrip()


def _xml(text: bytes, url: str, *, whole: bool) -> ParsedSitemap:
    if b"\x00" not in text[:64]:
        whole = whole and _END.search(text[-END:]) is not None
        text = _BARE_AMPERSAND.sub(b"&amp;", _OWN_ENTITY.sub(rb"{\1}", _as_declared(text)))
        if not whole:  # drop a truncated address
            text = text[: text.rfind(b"</") + 2] if text.rfind(b"<loc") > text.rfind(b"</loc") else text
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_comments=True
    )
    try:
        root = etree.fromstring(text, parser)
    except (etree.LxmlError, ValueError) as error:
        raise NotASitemap(f"isn't readable XML ({error})") from error
    kind = _with_local_names(root) if root is not None else ""
    if kind == "sitemapindex":
        sitemaps = [_address(_said(element, "loc"), url) for element in root.iterfind("{*}sitemap")]
        children = tuple(dict.fromkeys(good for good, _ in sitemaps if good))
        return ParsedSitemap(children=children, wrong=_wrong(sitemaps), whole=whole)
    if kind != "urlset":
        what = "an HTML page" if kind == "html" or _is_page(text) else f"XML of another kind ({kind})"
        raise NotASitemap(f"is {what}, not a sitemap")
    listed = root.findall("{*}url")
    addresses = [_address(_said(element, "loc"), url) for element in listed]
    pages = tuple(
        ListedPage(address, _said(element, "lastmod"), _alternates(element, url))
        for element, (address, _) in zip(listed, addresses, strict=True)
        if address
    )
    return ParsedSitemap(pages, wrong=_wrong(addresses), whole=whole)


def _with_local_names(root: etree._Element) -> str:
    """The name of the root. Elements whose prefix nothing declares get their local names; libxml2 keeps the prefix as a part of the name."""
    for element in root.iter(etree.Element):
        if ":" in (tag := str(element.tag)) and not tag.startswith("{"):
            element.tag = tag.rpartition(":")[2]
    return str(etree.QName(root).localname.lower())


def _as_declared(text: bytes) -> bytes:
    """The text in UTF-8 where it claims to be so and isn't; else as it is."""
    if (match := _DECLARED.match(text)) and match[1].lower() != b"utf-8":
        return text
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode(vocabulary().encoding, "replace").encode()
    return text


def _plain(text: bytes, url: str, *, whole: bool) -> ParsedSitemap:
    lines = [line.strip() for line in _as_declared(text).decode("utf-8", "replace").splitlines()]
    if urlsplit(url).path.endswith("/llms.txt"):
        lines = list(dict.fromkeys(link for line in lines for link in _MARKDOWN_LINK.findall(line)))
    addresses = [_address(line, url) for line in lines if line and not line.startswith("#")]
    pages = tuple(ListedPage(good) for good, _ in addresses if good)
    if not pages and addresses:
        raise NotASitemap("is text, but no list of addresses")
    return ParsedSitemap(pages, wrong=_wrong(addresses), whole=whole)


def _wrong(found: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((written or "(empty)", "isn't a web address") for good, written in found if not good)


def _address(written: str, url: str) -> tuple[str, str]:
    """(absolute address or nothing, as written)."""
    if not written or len(written) > 4000 or re.search(r"[\s<>\"{}|\\^`\x00-\x1f]", written):
        return "", written[:200]
    try:
        joined = urljoin(url, written).partition("#")[0]
        parts = urlsplit(joined)
        _ = parts.port
    except ValueError:  # a bracket or port that makes no sense
        return "", written
    return (joined, written) if parts.scheme in ("http", "https") and parts.hostname else ("", written)


def _said(element: etree._Element, name: str) -> str:
    return (element.findtext(f"{{*}}{name}") or "").strip()


def _alternates(element: etree._Element, url: str) -> dict[str, str]:
    alternates: dict[str, str] = {}
    for link in element.iterfind("{*}link"):
        if link.get("rel", "").lower() == "alternate" and link.get("hreflang"):
            address, _ = _address(link.get("href", "").strip(), url)
            if address:
                alternates[link.get("hreflang", "").strip()] = address
    return alternates


OTHER_HOST = "on a host that isn't one of the given sites"
MAX_DEPTH = 5
MAX_SITEMAPS = 10_000
MAX_ADDRESSES = 50_000  # that are read of one source

NAMES = ("sitemap.xml", "sitemap-index.xml", "sitemap_index.xml")
"""Usual names of sitemaps: the second by Astro, the third by WordPress."""


class NoSitemap(SitemapError):
    """The site has no sitemap, as far as it tells: its links can be followed."""


@dataclass
class _Reading:
    """The state of reading one site's sitemaps; `listed` counts all listed addresses, also invalid ones."""

    fetcher: Fetcher
    workers: Workers
    site: Source
    within: str
    entries: list[Entry] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    incomplete: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    listed: int = 0


async def read_sitemaps(site: Source, fetcher: Fetcher, workers: Workers, named: str = "") -> Listing:
    """Lists this sitemap, or the sitemaps of this site (an address ending in a slash, or a bare host).

    The sitemap that a page of the site has `named` is read instead of looking for one.

    Raises `SitemapError` when one can't be read, isn't a sitemap, or when none of its pages is to be read.
    """
    url = site.url
    is_host, is_folder = urlsplit(url).path in ("", "/"), url.endswith("/")
    reading = _Reading(fetcher, workers, site, url if is_folder and not is_host else "")
    roots = await _site_roots(url, fetcher) if (is_host or is_folder) and not named else [named or url]
    for root in roots:
        before = reading.listed
        reading.seen.add(root)
        await _read(reading, await _fetch(root, fetcher), root, 0)
        if reading.listed == before and root not in reading.incomplete:
            raise SitemapError(f"The sitemap {root} lists no page; check the site's build.")
    if not reading.entries:
        raise SitemapError(f"None of the pages that {url} lists can be indexed: {_first_reason(reading)}")
    sources = frozenset(roots)
    return Listing(tuple(reading.entries), tuple(reading.skipped), sources, sources - reading.incomplete)


def _first_reason(reading: _Reading) -> str:
    if not reading.skipped:
        return "they list none"
    first = reading.skipped[0]
    return f"{first.url}: {first.reason}{' (DOCS_CRAWL_ALLOW adds hosts)' if first.reason == OTHER_HOST else ''}"


async def _site_roots(site: str, fetcher: Fetcher) -> list[str]:
    """The sitemaps that a site's robots.txt names, else the first that is found under a usual name."""
    base = site if site.endswith("/") else f"{site}/"
    named = [joined(base, line) for line in (await fetcher.robots(base)).sitemaps]
    if allowed := [url for url in dict.fromkeys(named) if fetcher.allows(url)]:
        return allowed
    reason = ""
    none: type[SitemapError] = NoSitemap
    for guess in dict.fromkeys(urljoin(base, folder + name) for name in NAMES for folder in ("", "/")):
        try:
            answer = await fetcher.get(PageRequest(guess, types=None, max_bytes=MAX_BYTES, robots=False))
        except PageError as error:
            if error.status in ADVICE:
                raise SitemapError(f"{guess} can't be read: {error}.") from error
            reason = reason or str(error)
            none = none if isinstance(error, PageGone) else SitemapError
            continue
        if not _is_page(answer.body):
            return [guess]
        reason = reason or "a page answers there"
    raise none(
        f"{site} names no sitemap in robots.txt and has none at {urljoin(base, 'sitemap.xml')} ({reason}): give the sitemap's address"
    )


def _is_page(body: bytes) -> bool:
    """True for HTML, which sites of a single page answer to every address."""
    return b"<html" in body[:END].lower()


async def _fetch(url: str, fetcher: Fetcher) -> Fetched:
    try:
        return await fetcher.get(PageRequest(url, types=None, max_bytes=MAX_BYTES, robots=False))
    except PageError as error:
        raise SitemapError(cannot_be_read(f"The sitemap {url}", error)) from error


async def _read(reading: _Reading, answer: Fetched, source: str, depth: int) -> None:
    try:
        if len(answer.body) <= SMALL and not answer.body.startswith(GZIP):
            parsed = await asyncio.to_thread(parse_sitemap, answer.body, answer.url)
        else:
            parsed = await reading.workers.run(parse_sitemap, answer.body, answer.url)
    except (NotASitemap, ConversionError) as error:
        advice = FORM if has_login_form(answer.body) else "give the address of a sitemap"
        raise SitemapError(f"{answer.url} {error}; {advice}.") from error
    reading.skipped += [Skipped(wrong, reason) for wrong, reason in parsed.wrong]
    if not parsed.whole:
        reading.skipped.append(Skipped(answer.url, "sitemap without an end: what it lists after that is unknown"))
        reading.incomplete.add(source)
    reading.listed += len(parsed.pages) + len(parsed.wrong)
    _add(reading, parsed, source)
    for child in parsed.children:
        if reason := _refused(reading, child, depth):
            reading.skipped.append(Skipped(child, reason))
            if "twice" not in reason:
                reading.incomplete.add(source)
            continue
        reading.seen.add(child)
        try:
            await _read(reading, await _fetch(child, reading.fetcher), source, depth + 1)
        except SitemapError as error:
            # one dead part doesn't stop the rest, but then absence proves nothing
            reading.skipped.append(Skipped(child, str(error)))
            reading.incomplete.add(source)


def _refused(reading: _Reading, child: str, depth: int) -> str:
    if child in reading.seen:
        return "sitemap listed twice"
    if not reading.fetcher.allows(child):
        return "sitemap on a host that isn't one of the given sites"
    if depth + 1 > MAX_DEPTH:
        return f"sitemap nested more than {MAX_DEPTH} deep"
    if reading.listed > MAX_ADDRESSES:
        return f"sitemap beyond {MAX_ADDRESSES:,} addresses"
    return f"more than {MAX_SITEMAPS} sitemaps" if len(reading.seen) >= MAX_SITEMAPS else ""


def _add(reading: _Reading, parsed: ParsedSitemap, source: str) -> None:
    for page in parsed.pages:
        if reason := _left_out(reading, page.url):
            reading.skipped.append(Skipped(page.url, reason))
            continue
        alternates = {k: v for k, v in page.alternates.items() if reading.fetcher.allows(v)}
        reading.entries.append(Entry(page.url, source, reading.site, page.lastmod, alternates))


def _left_out(reading: _Reading, url: str) -> str:
    if not reading.fetcher.allows(url):
        return OTHER_HOST
    if not url.startswith(reading.within):
        return f"not under {reading.within}"
    return reading.site.left_out(url)
