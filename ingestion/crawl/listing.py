"""Sources -> the pages to read, each once, and the skipped ones with their reasons."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import unquote

from app.core import spans
from app.core.errors import ReaderError, SitemapError, SourceUnavailable
from app.core.log_message import masked
from app.core.settings import Settings
from app.core.types import Page
from ingestion.crawl import sitemap
from ingestion.crawl.certificates import tls_of
from ingestion.crawl.directory import list_files
from ingestion.crawl.documents import list_documents
from ingestion.crawl.fetch import FORBIDDEN, Fetcher, Robots
from ingestion.crawl.follow import NamedSitemap, follow_links
from ingestion.crawl.sitemap import NoSitemap, read_sitemaps
from ingestion.entry import Entry, Listing, Skipped
from ingestion.sources import AddedSite, Source, read_headers, reader_of
from ingestion.urls import public_url
from ingestion.workers import Workers


async def list_pages(
    sources: Sequence[Source],
    fetcher: Fetcher,
    workers: Workers,
    known: Iterable[Page] = (),
    aside: Mapping[Source, Listing] = MappingProxyType({}),
) -> Listing:
    """Lists the pages of the sources; `known` are those of the index. A source that can't be read or has no page is among
    those that `failed`; what is listed of those `aside` is given. Raises `SitemapError` for a site or a
    directory that is the only source.
    """
    for source in sources:
        if source.requested and not source.git:
            places = [source.url, source.requested] if source.openapi else [source.requested]
            fetcher.allow(places, source.hosts, trusted=not isinstance(source, AddedSite))
            fetcher.set_pace(source.requested, source.parallel, source.delay)
    with spans.span("list"):
        alone = len(sources) == 1
        read = [aside.get(one) or await _read(one, fetcher, workers, known, alone=alone) for one in sources]
    entries, skipped = _unique(entry for listing in read for entry in listing.entries)
    listed = {entry.url for entry in entries}
    # another source may list what this one skips
    skipped += [skip for listing in read for skip in listing.skipped if skip.url not in listed]
    read_sources = frozenset(root for listing in read for root in listing.sources)
    partly = frozenset(root for listing in read for root in listing.sources - listing.complete)
    failed = tuple(failure for listing in read for failure in listing.failed)
    notes = tuple(note for listing in read for note in listing.notes)
    roots = {source: listing.sources for source, listing in zip(sources, read, strict=True)}
    return Listing(tuple(entries), tuple(skipped), read_sources, read_sources - partly, failed, roots, notes)


def signed_in(fetcher: Fetcher, sources: Sequence[Source]) -> list[Source]:
    """The sources without their passwords, headers and certificates, which stay with the fetcher."""
    for source, tls in zip(sources, tls_of(sources), strict=True):
        fetcher.sign_in(source.requested, read_headers(source.headers, masked(source.place)), tls)
    return [source.without_login() for source in sources]


async def preview(sources: Sequence[Source], settings: Settings) -> Listing:
    """The pages that a run would fetch, and those that it would leave out and why, as far as that is known without fetching
    a page: by sitemaps, the rules of the sources, and robots.txt. A site without a sitemap tells its pages by their links only.
    """
    async with Fetcher(settings) as fetcher, Workers(page_seconds=settings.tuning.page_seconds) as workers:
        listing = await list_pages(signed_in(fetcher, sources), fetcher, workers)
        entries, skipped = list[Entry](), list(listing.skipped)
        for entry in listing.entries:
            rules = Robots() if entry.is_local else await fetcher.robots(entry.url)
            if reason := rules.refusal or ("" if rules.allows(entry.url) else FORBIDDEN):
                skipped.append(Skipped(entry.url, reason))
            else:
                entries.append(entry)
    return replace(listing, entries=tuple(entries), skipped=tuple(skipped))


async def _read(source: Source, fetcher: Fetcher, workers: Workers, known: Iterable[Page], *, alone: bool) -> Listing:
    try:
        return _within(await _one(source, fetcher, workers, known), source)
    except (ReaderError, SitemapError, SourceUnavailable) as error:
        if alone and isinstance(error, SitemapError):
            raise SitemapError(f"{str(error).rstrip('.')}. Nothing was changed.") from error
        return Listing((), (), frozenset({source.url}), frozenset(), (Skipped(source.url, str(error)),))


def _within(listing: Listing, source: Source) -> Listing:
    """The listing with the first addresses of the source, among the failed ones if it lists more."""
    count, most = len(listing.entries), sitemap.MAX_ADDRESSES
    if count <= most:
        return listing
    told = (
        f"lists {count:,} addresses, of which the first {most:,} are read: choose others with `include` and `exclude`, or make several"
        " sources of it"
    )
    failed = (*listing.failed, Skipped(source.url, told))
    return replace(listing, entries=listing.entries[:most], complete=frozenset(), failed=failed)


async def _one(source: Source, fetcher: Fetcher, workers: Workers, known: Iterable[Page]) -> Listing:
    if source.reader or source.git:
        return await (reader(source, fetcher) if (reader := reader_of(source)) else list_documents(source))
    if source.openapi:
        return Listing.of(source, [Entry(source.openapi, source.url, source, public=source.url)])
    if source.directory:
        return await asyncio.to_thread(list_files, source, fetcher.settings.languages)
    return await _site(source, fetcher, workers, known)


async def _site(source: Source, fetcher: Fetcher, workers: Workers, known: Iterable[Page]) -> Listing:
    if source.follow:
        return await follow_links(source, fetcher, workers, known)
    try:
        return await read_sitemaps(source, fetcher, workers)
    except NoSitemap as missing:
        try:
            return await follow_links(source, fetcher, workers, known)
        except NamedSitemap as named:
            return await read_sitemaps(source, fetcher, workers, str(named))
        except SitemapError as error:
            raise SitemapError(f"{missing}. Its links can't be followed either: {error}") from error


def _unique(listed: Iterable[Entry]) -> tuple[list[Entry], list[Skipped]]:
    """Each page once, as HTML where its Markdown is listed too, and the entries skipped for that."""
    chosen: dict[str, Entry] = {}
    skipped: list[Skipped] = []
    for entry in listed:
        key = unquote(entry.address)
        other = chosen.setdefault(key, entry)
        if unquote(other.url) == unquote(entry.url):
            if other.site.collection != entry.site.collection:
                skipped.append(Skipped(entry.url, f"is listed for the collection {other.site.collection or 'set'} too"))
            continue
        chosen[key], dropped = (entry, other) if _gives_way(other, entry) else (other, entry)
        skipped.append(Skipped(dropped.url, f"is the same page as {chosen[key].url}"))
    return list(chosen.values()), skipped


def _gives_way(page: Entry, other: Entry) -> bool:
    """Returns True if the other form of the page is read: OpenAPI rather than what shows it, HTML rather than Markdown."""
    if page.site.openapi or other.site.openapi:
        return not page.site.openapi
    return public_url(page.url) != page.url and public_url(other.url) == other.url
