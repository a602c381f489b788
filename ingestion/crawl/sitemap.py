"""Sitemaps of any form -> the pages they list."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from app.core.errors import SitemapError
from ingestion.crawl.advice import ADVICE, FORM, cannot_be_read
from ingestion.crawl.exchange import Fetched, PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.login_page import has_login_form
from ingestion.crawl.sitemap_parse import MAX_BYTES, NotASitemap, ParsedSitemap, parse_sitemap
from ingestion.entry import Entry, Listing, Skipped
from ingestion.errors import ConversionError, PageError, PageGone
from ingestion.sources import Source
from ingestion.urls import joined
from ingestion.workers import Workers

OTHER_HOST = "on a host that isn't one of the given sites"
MAX_DEPTH = 5
MAX_SITEMAPS = 10_000

NAMES = ("sitemap.xml", "sitemap-index.xml", "sitemap_index.xml")
"""What sitemaps are usually called: the second by Astro, the third by WordPress."""

SMALL = 64 << 10
"""Bytes of a sitemap, not packed, that are parsed at once: starting a process takes longer."""


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
    """What this sitemap, or the sitemaps of this site (an address ending in a slash, or a bare host), list.

    The sitemap that a page of the site has `named` is read instead of looking for one.

    Raises `SitemapError` when one can't be read, isn't a sitemap, or when none of its pages is to be read.
    """
    url = site.url
    reading = _Reading(fetcher, workers, site, "" if urlsplit(url).path in ("", "/") or not url.endswith("/") else url)
    roots = [named or url] if named or not _is_site(url) else await _site_roots(url, fetcher)
    for root in roots:
        before = reading.listed
        reading.seen.add(root)
        await _read(reading, await _fetch(root, fetcher), root, 0)
        if reading.listed == before and root not in reading.incomplete:
            raise SitemapError(f"The sitemap {root} lists no page. Nothing was changed; check the site's build.")
    if not reading.entries:
        raise SitemapError(f"None of the pages that {url} lists can be indexed: {_first_reason(reading)}")
    sources = frozenset(roots)
    return Listing(tuple(reading.entries), tuple(reading.skipped), sources, sources - reading.incomplete)


def _is_site(url: str) -> bool:
    return urlsplit(url).path in ("", "/") or url.endswith("/")


def _first_reason(reading: _Reading) -> str:
    if not reading.skipped:
        return "they list none"
    first = reading.skipped[0]
    return f"{first.url}: {first.reason}{' (DOCS_CRAWL_ALLOW adds hosts)' if first.reason == OTHER_HOST else ''}"


async def _site_roots(site: str, fetcher: Fetcher) -> list[str]:
    """The sitemaps that a site's robots.txt names, else the first that is found under a usual name."""
    base = site if site.endswith("/") else f"{site}/"
    named = [joined(base, line) for line in (await fetcher.robots(base)).sitemaps]
    if found := [url for url in dict.fromkeys(named) if fetcher.allows(url)]:
        return found
    reason = ""
    none: type[SitemapError] = NoSitemap
    for guess in dict.fromkeys(urljoin(base, folder + name) for name in NAMES for folder in ("", "/")):
        try:
            await fetcher.get(PageRequest(guess, types=None, max_bytes=MAX_BYTES, robots=False))
        except PageError as error:
            if error.status in ADVICE:
                raise SitemapError(f"{guess} can't be read: {error}. Nothing was changed.") from error
            reason = reason or str(error)
            none = none if isinstance(error, PageGone) else SitemapError
            continue
        return [guess]
    raise none(
        f"{site} names no sitemap in robots.txt and has none at {urljoin(base, 'sitemap.xml')} ({reason}): give the sitemap's address"
    )


async def _fetch(url: str, fetcher: Fetcher) -> Fetched:
    try:
        return await fetcher.get(PageRequest(url, types=None, max_bytes=MAX_BYTES, robots=False))
    except PageError as error:
        raise SitemapError(cannot_be_read(f"The sitemap {url}", error)) from error


async def _read(reading: _Reading, answer: Fetched, source: str, depth: int) -> None:
    """Add the pages of a sitemap and of the sitemaps it lists."""
    try:
        if len(answer.body) <= SMALL and not answer.body.startswith(b"\x1f\x8b"):
            parsed = await asyncio.to_thread(parse_sitemap, answer.body, answer.url)
        else:
            parsed = await reading.workers.run(parse_sitemap, answer.body, answer.url)
    except (NotASitemap, ConversionError) as error:
        advice = FORM if has_login_form(answer.body) else "give the address of a sitemap"
        raise SitemapError(f"{answer.url} {error}. Nothing was changed; {advice}.") from error
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
