"""A site without a sitemap -> its pages, by the links between them, within limits."""

from __future__ import annotations

import asyncio
import mimetypes
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from app.core.errors import SitemapError
from app.core.types import Page
from ingestion.crawl.exchange import (
    FORM,
    HTML_TYPES,
    IGNORE,
    Fetched,
    PageRequest,
    cannot_be_read,
    has_login_form,
    page_types,
)
from ingestion.crawl.fetch import Fetcher
from ingestion.entry import Entry, Listing, Skipped
from ingestion.errors import NOINDEX, ConversionError, PageError
from ingestion.sources import Source, settings_of
from ingestion.urls import joined, stem
from ingestion.workers import Workers

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_LINKS = 5_000
"""Links of one page that are looked at."""

_LONGEST = 2_000
_LINKS = "//a[@href][not(contains(@rel, 'nofollow'))]/@href|//frame/@src"


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Absolute addresses without fragments, in the page's order, each once; none with `nofollow` of the page.

    `sitemap` is the one that the page names.
    """

    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False
    sitemap: str = ""


def page_links(body: bytes, charset: str, url: str, header: str | None) -> PageLinks:
    """The links of the page at `url`, whose X-Robots-Tag is `header`; none for what isn't HTML.

    With None, neither the header nor the page itself forbids anything.
    """
    import lxml.html
    from lxml.etree import LxmlError, ParserError

    parser = lxml.html.HTMLParser(encoding=_known(charset), remove_comments=True, huge_tree=True)
    try:
        page = lxml.html.document_fromstring(body, parser=parser)
    except (ParserError, LxmlError, ValueError):
        return PageLinks()
    base = joined(url, next(iter(page.xpath("//base/@href")), "")) or url
    orders = _orders(page, header) if header is not None else set()
    canonical, sitemap = (next(iter(page.xpath(f"//link[@rel='{rel}']/@href")), "") for rel in ("canonical", "sitemap"))
    hrefs = [] if orders & {"nofollow", "none"} else page.xpath(_LINKS)
    links = (_absolute(base, href) for href in hrefs[:MAX_LINKS])
    return PageLinks(
        tuple(dict.fromkeys(link for link in links if link)),
        _absolute(base, canonical) if canonical else "",
        bool(orders & {"noindex", "none"}),
        _absolute(base, sitemap) if sitemap else "",
    )


def _orders(page: HtmlElement, header: str) -> set[str]:
    """The orders of a page to crawlers. An agent's name before a colon addresses other crawlers."""
    said = page.xpath("//meta[translate(@name, 'ROBTS', 'robts')='robots']/@content")
    return set(re.findall(r"[\w-]+", " ".join(["" if ":" in header else header, *said]).lower()))


def _absolute(base: str, href: str) -> str:
    if len(href) > _LONGEST or href.startswith("#"):
        return ""
    link = joined(base, href).partition("#")[0]
    return quote(link, safe=string.punctuation) if re.match(r"https?://", link) and not re.search(r"\s", link) else ""


def _known(charset: str) -> str | None:
    try:
        return charset if charset and "".encode(charset) == b"" else None
    except (LookupError, UnicodeError):
        return None


BATCH = 64
"""Pages that are requested before their links are looked at; how many at once is the host's pace."""
MOST_LISTED = 1_000
"""Addresses that the report lists because they weren't followed; the others are counted."""
MOST_COUNTED = 100_000

_SOURCE = re.compile(r"\.(?:md|mdx|rst|adoc|ipynb)\.txt$")
"""Addresses of page sources that Sphinx puts beside the pages."""

_REPEATS = 3


class NamedSitemap(SitemapError):
    """The start page names a sitemap, whose address this is: links needn't be followed."""


@dataclass
class _Crawl:
    """The state of following the links of one site.

    `found` has each address with its depth, in the order of discovery; `pages` those that aren't left out, and `children`
    the addresses that each led to first.
    """

    fetcher: Fetcher
    workers: Workers
    site: Source
    known: Mapping[str, Page]
    prefix: str = ""
    found: dict[str, int] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    pages: dict[str, None] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    skipped: list[Skipped] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    refused: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)


async def follow_links(site: Source, fetcher: Fetcher, workers: Workers, pages: Iterable[Page]) -> Listing:
    """The pages that the site's start address leads to, below the folder of that address.

    What is fetched is kept for the conversion. Those of the index's `pages` that are of this site are requested
    conditionally; if they didn't change, they lead to what they led to before. Raises `SitemapError` if the start address is no page,
    and `NamedSitemap` if it names a sitemap, unless the source wants its links to be followed.
    """
    crawl = _Crawl(
        fetcher, workers, site, {page.fetch.fetched_url: page for page in pages if page.fetch.source == site.url}
    )
    first = site.url if urlsplit(site.url).path else f"{site.url}/"
    start = await _fetched(crawl, first)
    if isinstance(start, PageError):
        raise SitemapError(cannot_be_read(site.url, start))
    if not site.follow and (named := (await _links(crawl, start)).sitemap) and fetcher.allows(named):
        fetcher.downloads.keep(first, start)
        raise NamedSitemap(named)
    crawl.prefix = start.url[: start.url.rfind("/") + 1]
    crawl.found = {first: 0}
    await _add(crawl, first, start)
    if len(crawl.found) == 1 and has_login_form(start.body):
        raise SitemapError(f"{site.url} leads to no other page: {FORM}.")
    await _walk(crawl)
    # pages of the index that no page links to any longer stay as long as they answer
    unlinked = [url for url in crawl.known if url not in crawl.found and not _forbidden(crawl, url)]
    crawl.found |= dict.fromkeys(unlinked[: max(0, site.max_pages - len(crawl.found))], 0)
    await _walk(crawl)
    entries: list[Entry] = []
    for url in crawl.pages:
        if reason := site.left_out(url):
            _leave_out(crawl, url, reason)
        else:
            entries.append(Entry(url, site.url, site, links=tuple(crawl.children[url])))
    if not entries:
        advice = f" {crawl.left_out[NOINDEX]} of them say noindex: {IGNORE}." if crawl.left_out[NOINDEX] else ""
        raise SitemapError(f"None of the pages that {site.url} links to can be indexed.{advice}")
    return Listing.of(site, entries, crawl.skipped, _note(crawl))


async def _walk(crawl: _Crawl) -> None:
    while waiting := [url for url in crawl.found if url not in crawl.done][:BATCH]:
        answers = await asyncio.gather(*(_fetched(crawl, url) for url in waiting))
        for url, answer in zip(waiting, answers, strict=True):
            await _add(crawl, url, answer)


async def _fetched(crawl: _Crawl, url: str) -> Fetched | PageError:
    page = crawl.known.get(url)
    current = page is not None and settings_of(page.fetch.reading) == crawl.site.reading
    etag, modified = (page.fetch.etag, page.fetch.last_modified) if page is not None and current else ("", "")
    try:
        return await crawl.fetcher.get(PageRequest(url, etag=etag, last_modified=modified))
    except PageError as error:
        return error


async def _add(crawl: _Crawl, asked: str, answer: Fetched | PageError) -> None:
    """Keep an answer for the conversion, and find what it links to. Addresses that only redirect give way to their targets."""
    url = asked if isinstance(answer, PageError) or not answer.redirects else answer.url
    crawl.done.add(asked)
    if url != asked:
        if url in crawl.done:
            return
        if reason := _forbidden(crawl, url):
            _leave_out(crawl, asked, f"redirected to {url}, which {reason}", "redirected to others")
            return
        crawl.done.add(url)
        crawl.found.setdefault(url, crawl.found[asked])
    if parent := crawl.parents.get(asked):
        crawl.children[parent].append(url)
    if isinstance(answer, PageError):
        crawl.pages[url] = None
        crawl.fetcher.downloads.keep(url, answer)
    elif answer.status == 304:
        crawl.pages[url] = None
        _find(crawl, url, crawl.known[asked].fetch.links)
        crawl.fetcher.downloads.keep(url, answer)
    else:
        await _add_page(crawl, url, replace(answer, redirects=()))


async def _add_page(crawl: _Crawl, url: str, answer: Fetched) -> None:
    links = await _links(crawl, answer)
    is_usual = bool(links.canonical) and stem(links.canonical) == stem(url)  # another address of the same page
    canonical = links.canonical if is_usual and links.canonical.startswith(crawl.prefix) else url
    whole = _find(crawl, url, (canonical, *links.links))
    if canonical != url:
        _leave_out(crawl, url, f"is the same page as {canonical}", "the same page as another (canonical)")
    elif links.noindex:
        _leave_out(crawl, url, NOINDEX)
    else:
        crawl.pages[url] = None
        # the index doesn't know links beyond a limit: in the next run, only the whole page can lead to them
        crawl.fetcher.downloads.keep(url, answer if whole else replace(answer, etag="", last_modified=""))


async def _links(crawl: _Crawl, answer: Fetched) -> PageLinks:
    if answer.media_type not in HTML_TYPES:
        return PageLinks()
    robots = answer.robots if crawl.site.noindex == "respect" else None
    try:
        with crawl.workers.page(answer.url):
            return await crawl.workers.run(page_links, answer.body, answer.charset, answer.url, robots)
    except ConversionError:  # the conversion says what is wrong with it
        return PageLinks()


def _find(crawl: _Crawl, url: str, links: Sequence[str]) -> bool:
    """Add what the page links to. False if a limit left something out."""
    whole, depth = True, crawl.found[url]
    for link in links:
        if link in crawl.found or not link.startswith(crawl.prefix):
            continue
        if reason := _forbidden(crawl, link):
            _leave_out(crawl, link, reason)
        elif reason := _beyond(crawl, depth + 1):
            whole = False
            _leave_out(crawl, link, reason)
        else:
            crawl.found[link] = depth + 1
            crawl.parents[link] = url
    return whole


def _forbidden(crawl: _Crawl, url: str) -> str:
    parts = urlsplit(url)
    if not url.startswith(crawl.prefix):
        return f"isn't under {crawl.prefix}"
    if parts.query:
        return "has a query"
    kind = mimetypes.guess_type(parts.path)[0]
    if kind is not None and kind not in page_types():
        return f"is no page ({kind})"
    if _SOURCE.search(parts.path):
        return "is the source of a page"
    repeated = Counter(part for part in parts.path.split("/") if part)
    if repeated and max(repeated.values()) >= _REPEATS:
        return "repeats a part of its path, as pages without an end do"
    excluded = crawl.site.left_out(url)
    return excluded if excluded.startswith("excluded") else ""


def _beyond(crawl: _Crawl, depth: int) -> str:
    site = crawl.site
    if depth > site.max_depth:
        return f"deeper than max_depth = {site.max_depth}"
    return f"more than max_pages = {site.max_pages}" if len(crawl.found) >= site.max_pages else ""


def _leave_out(crawl: _Crawl, url: str, reason: str, kind: str = "") -> None:
    """Count the address once, and list it in the report unless there are too many."""
    if url in crawl.refused or len(crawl.refused) >= MOST_COUNTED:
        return
    crawl.refused.add(url)
    crawl.left_out[kind or reason] += 1
    if len(crawl.skipped) < MOST_LISTED:
        crawl.skipped.append(Skipped(url, reason))


def _note(crawl: _Crawl) -> str:
    deepest = max(crawl.found[url] for url in crawl.pages)
    reasons = "; ".join(f"{count}: {reason}" for reason, count in crawl.left_out.most_common(8))
    away = f"at most {deepest} {'link' if deepest == 1 else 'links'} away"
    told = f"{crawl.site.url}: links were followed instead of a sitemap: {len(crawl.pages)} addresses, {away}"
    return told + (f". Left out: {reasons}" if reasons else "")
