"""Sources -> the pages to read, each once, and the skipped ones with their reasons."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from app.core import spans
from app.core.errors import ReaderError
from ingestion.crawl.directory import list_files
from ingestion.crawl.documents import list_documents
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.sitemap import read_sitemaps
from ingestion.entry import Entry, Listing, Skipped
from ingestion.sources import Source
from ingestion.urls import public_url
from ingestion.workers import Workers


async def list_pages(sources: Sequence[Source], fetcher: Fetcher, workers: Workers) -> Listing:
    """What the sources list. Raises `SitemapError` when one of them can't be read or brings no page.

    A LlamaIndex reader that fails is among those that `failed`.
    """
    for source in sources:
        if not source.directory and not source.reader:
            fetcher.allow([source.url], source.hosts)
            fetcher.set_pace(source.url, source.parallel, source.delay)
    with spans.span("list"):
        read = [await _one(source, fetcher, workers) for source in sources]
    entries, skipped = _unique(entry for one in read for entry in one.entries)
    kept = {entry.url for entry in entries}
    # another source may list what this one skips
    skipped += [skip for one in read for skip in one.skipped if skip.url not in kept]
    found = frozenset(root for one in read for root in one.sources)
    partly = frozenset(root for one in read for root in one.sources - one.complete)
    failed = tuple(failure for one in read for failure in one.failed)
    roots = {source: one.sources for source, one in zip(sources, read, strict=True)}
    return Listing(tuple(entries), tuple(skipped), found, found - partly, failed, roots)


async def _one(source: Source, fetcher: Fetcher, workers: Workers) -> Listing:
    if source.reader:
        try:
            return await list_documents(source)
        except ReaderError as error:
            return Listing((), (), frozenset({source.url}), frozenset(), (Skipped(source.url, str(error)),))
    if source.directory:
        return await asyncio.to_thread(list_files, source, fetcher.settings.languages)
    return await read_sitemaps(source, fetcher, workers)


def _unique(listed: Iterable[Entry]) -> tuple[list[Entry], list[Skipped]]:
    """Each page once, as raw Markdown where both forms are listed, and the entries skipped for that."""
    chosen: dict[str, Entry] = {}
    skipped: list[Skipped] = []
    for entry in listed:
        key = unquote(entry.address)
        other = chosen.setdefault(key, entry)
        if unquote(other.url) == unquote(entry.url):
            if other.site.collection != entry.site.collection:
                skipped.append(Skipped(entry.url, f"is listed for the collection {other.site.collection or 'set'} too"))
            continue
        raw_is_new = public_url(other.url) == other.url
        chosen[key], left = (entry, other) if raw_is_new else (other, entry)
        skipped.append(Skipped(left.url, f"is the same page as {chosen[key].url}"))
    return list(chosen.values()), skipped
