"""An llms-full.txt as a source: all pages of a site in one file, each listed under its own address."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urljoin, urlsplit

from app.core.errors import SitemapError
from ingestion.crawl.advice import cannot_be_read
from ingestion.crawl.exchange import Fetched, PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.full_text_parse import FullText, Known, Section, parse_full_text
from ingestion.crawl.sitemap import OTHER_HOST, read_sitemaps
from ingestion.crawl.sitemap_parse import MAX_BYTES
from ingestion.entry import Entry, Given, Listing, Skipped
from ingestion.errors import ConversionError, PageError
from ingestion.sources import Source
from ingestion.workers import Workers

_NAMES = re.compile(r"/llms-(?:full|small|medium|ctx|ctx-full)\.(?:txt|md)$")


def is_full_text(url: str) -> bool:
    """True for the address of a file that holds the pages of a site, as `llms.txt` only lists them."""
    return _NAMES.search(urlsplit(url).path) is not None


async def list_sections(source: Source, fetcher: Fetcher, workers: Workers) -> Listing:
    """The pages in the file, each with its text. Sections without an address make one page, at that of the file.

    Raises `SitemapError` when the file can't be read, is too large, or none of its pages is to be read.
    """
    text = await _text(source.url, fetcher)
    known = Known(await _index(source.url, fetcher), await _listed(source, fetcher, workers))
    try:
        parsed = await workers.run(parse_full_text, text, source.url, source.hosts, known)
    except ConversionError as error:
        raise SitemapError(f"{source.url} {error}. Nothing was changed.") from error
    entries, skipped = _entries(parsed, source, fetcher)
    if not entries:
        reason = f": {skipped[0].url}: {skipped[0].reason}" if skipped else ", because no page was found in it"
        raise SitemapError(f"None of the pages in {source.url} can be indexed{reason}. Nothing was changed.")
    here = frozenset({source.url})
    return Listing(
        tuple(entries), tuple(skipped), here, here if parsed.whole else frozenset(), notes=_notes(parsed, source)
    )


async def _text(url: str, fetcher: Fetcher) -> str:
    try:
        answer = await fetcher.get(PageRequest(url, types=None, max_bytes=MAX_BYTES))
    except PageError as error:
        raise SitemapError(cannot_be_read(url, error)) from error
    text = _decoded(answer)
    if re.match(r"\s*(?:<!doctype html|<html)", text[:1000], re.IGNORECASE):
        raise SitemapError(f"{url} is an HTML page, not text. Nothing was changed; check its address.")
    return text


def _decoded(answer: Fetched) -> str:
    return answer.body.decode("utf-8-sig", "replace")


async def _index(url: str, fetcher: Fetcher) -> str:
    """The `llms.txt` beside the file; empty if there is none."""
    try:
        return _decoded(await fetcher.get(PageRequest(urljoin(url, "llms.txt"), types=None, max_bytes=MAX_BYTES)))
    except PageError:
        return ""


async def _listed(source: Source, fetcher: Fetcher, workers: Workers) -> tuple[str, ...]:
    """The addresses in the sitemap of the site; none if it has none."""
    folder = Source(url=urljoin(source.url, "."), hosts=source.hosts)
    try:
        return tuple(entry.address for entry in (await read_sitemaps(folder, fetcher, workers)).entries)
    except SitemapError:
        return ()


def _entries(parsed: FullText, source: Source, fetcher: Fetcher) -> tuple[list[Entry], list[Skipped]]:
    pages: dict[str, list[Section]] = {}
    for section in parsed.sections:
        pages.setdefault(section.address or source.url, []).append(section)
    left = {address: _left_out(address, source, fetcher) for address in pages}
    entries = [_entry(address, sections, source) for address, sections in pages.items() if not left[address]]
    skipped = [Skipped(address, reason) for address, reason in left.items() if reason]
    if not parsed.whole:
        skipped.append(Skipped(source.url, "has no end: its last page and what follows are unknown"))
    return entries, skipped


def _left_out(address: str, source: Source, fetcher: Fetcher) -> str:
    if not fetcher.allows(address):
        return f"{OTHER_HOST} (`hosts` of the source adds some)"
    return source.left_out(address)


def _entry(address: str, sections: Iterable[Section], source: Source) -> Entry:
    first, *others = sections
    text = "\n\n".join((first.text, *(one.text for one in others)))
    given = Given(text, "text/markdown", first.title if first.address else "", base=first.base)
    return Entry(address, source.url, source, public=address, given=given)


def _notes(parsed: FullText, source: Source) -> tuple[str, ...]:
    lost = [one.title for one in parsed.sections if not one.address]
    if not lost:
        return ()
    note = (
        f"{source.url}: {len(lost)} of its {len(parsed.sections)} sections have no address of their own, as "
        f"{lost[0] or 'the first one'}: answers link to the file. Name the site instead of the file to index its pages"
    )
    return (note,)
