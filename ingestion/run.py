"""The whole flow: sitemaps -> fetch -> convert -> language -> split -> embed -> draft -> publish, with its report."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import unquote

from app.core.analysis import ANALYZER
from app.core.errors import NoIndex, NotPublished
from app.core.models.base import Embedder
from app.core.settings import Settings
from app.core.store.base import Draft, Generation, Store
from app.core.types import Page, Recipe
from ingestion.convert import VERSION
from ingestion.convert.links import public_url
from ingestion.dates import without_build_dates
from ingestion.embed import Embedding
from ingestion.fetch import Fetcher, host
from ingestion.prepare import Prepared
from ingestion.progress import Progress, Silent
from ingestion.read import Change, Reader
from ingestion.report import READ, PageReport, Report
from ingestion.sitemap import Entry, Sitemaps, read_sitemaps
from ingestion.split import open_splitter
from ingestion.write import Writer

READAHEAD = 16
"""Read pages that may wait for the writer: keeps memory flat when embedding is slower than fetching."""


async def ingest(  # noqa: PLR0913  # the parts are handed in, each by name
    sites: Sequence[str],
    *,
    store: Store,
    embedder: Embedder,
    settings: Settings,
    progress: Progress | None = None,
    fetcher: Fetcher | None = None,
    only: bool = False,
) -> Report:
    """Bring the index in line with what the sites' sitemaps list, in one atomic step, and say what was done.

    Pages of other sitemaps and collections stay as they are; with `only`, the collection's pages of sitemaps that
    aren't given leave it. Raises `SitemapError` or `NotPublished` when the
    sites can't be read, and what the store or embedder raise; the live index is then as it was.
    """
    began, progress = time.monotonic(), progress or Silent()
    report = Report(tuple(sites))
    async with AsyncExitStack() as stack:
        stack.callback(progress.close)
        client = fetcher if fetcher is not None else await stack.enter_async_context(Fetcher(settings))
        progress.stage("Reading sitemaps", 0)
        sitemaps = await read_sitemaps(sites, client)
        draft = await stack.enter_async_context(await store.draft(await recipe_for(embedder, settings)))
        base = await _Base.read(draft, store)
        entries = without_build_dates(_unique(sitemaps, report))
        embedding = Embedding(embedder, settings.embedding_batch, settings.embedding_parallel)
        reader = await stack.enter_async_context(base.reader(client, settings, embedding, entries))

        def written(page: PageReport) -> None:
            report.pages.append(page)
            progress.advance(note=page.url)

        writer = Writer(draft, embedding, written)
        progress.stage("Pages", len(entries))
        await _flow(entries, reader, writer)
        _refuse_nothing(report)
        for gone in _gone(reader.known, sitemaps, report, only=only):
            await draft.remove(gone.url)
            report.pages.append(gone)
        await base.carry_over(writer, report, reader)
        progress.stage("Publishing", 0)
        report.published = await draft.publish()
    report.embedding_calls, report.embedded_texts = embedding.calls, embedding.texts
    report.seconds = time.monotonic() - began
    return report


async def recipe_for(embedder: Embedder, settings: Settings) -> Recipe:
    """How an index is made with these settings: another recipe builds it anew."""
    return Recipe(
        embedder=embedder.name,
        dimension=await embedder.dimension(),
        splitter=f"{VERSION}/{open_splitter(settings).name}",
        analyzer=ANALYZER,
    )


@dataclass(frozen=True, slots=True)
class _Base:
    """What the run starts from. `live` is set when the draft can't share it and all must be put anew."""

    states: Mapping[str, Page]
    rebuilds: bool
    live: Generation | None

    @classmethod
    async def read(cls, draft: Draft, store: Store) -> _Base:
        if not draft.rebuilds:
            return cls(await draft.page_states(), rebuilds=False, live=None)
        try:
            live = await store.live()
        except NoIndex:
            return cls({}, rebuilds=True, live=None)
        return cls({page.url: page for page in await live.pages()}, rebuilds=True, live=live)

    def reader(self, fetcher: Fetcher, settings: Settings, embedding: Embedding, entries: Sequence[Entry]) -> Reader:
        known = {url: page for url, page in self.states.items() if page.collection == settings.collection}
        taken = {url: page for url, page in self.states.items() if url not in known}
        listed = frozenset(public_url(entry.url) for entry in entries)
        return Reader(fetcher, settings, embedding, known, taken, listed, fresh=self.rebuilds)

    async def carry_over(self, writer: Writer, report: Report, reader: Reader) -> None:
        """Put the pages that this run didn't read, from the Markdown that the live generation has."""
        if self.live is None:
            return
        done = {p.url for p in report.pages if p.outcome == "removed" or p.outcome in READ}
        for url in self.states:
            page = await self.live.page(url) if url not in done else None
            if page is not None:
                await writer.write(Change(None, put=await reader.finished(Prepared(page))))
        await writer.flush()


def _unique(sitemaps: Sitemaps, report: Report) -> list[Entry]:
    """Each page once, as raw Markdown where it's listed in both forms; the report tells the rest."""
    chosen: dict[str, Entry] = {}
    for entry in sitemaps.entries:
        key = unquote(public_url(entry.url))
        other = chosen.setdefault(key, entry)
        if other is entry:
            continue
        raw_is_new = public_url(other.url) == other.url
        chosen[key], left = (entry, other) if raw_is_new else (other, entry)
        report.pages.append(PageReport(left.url, "skipped", f"is the same page as {chosen[key].url}"))
    report.pages += [PageReport(skipped.url, "skipped", skipped.reason) for skipped in sitemaps.skipped]
    return list(chosen.values())


async def _flow(entries: Sequence[Entry], reader: Reader, writer: Writer) -> None:
    """Read and write all entries side by side."""
    queue: asyncio.Queue[Change | None] = asyncio.Queue(READAHEAD)
    waiting = iter(entries)
    hosts = len({host(entry.url) for entry in entries})

    async def read() -> None:
        for entry in waiting:
            await queue.put(await reader.read(entry))

    async def write() -> None:
        while (change := await queue.get()) is not None:
            await writer.write(change)
        await writer.flush()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            # two more than may fetch: they wait for conversion meanwhile
            await asyncio.gather(
                *(group.create_task(read()) for _ in range(reader.settings.crawl_parallel * hosts + 2))
            )
            await queue.put(None)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors


def _refuse_nothing(report: Report) -> None:
    if any(page.outcome in READ for page in report.pages):
        return
    reasons = Counter(page.reason for page in report.pages).most_common(3)
    told = "; ".join(f"{reason} ({count})" for reason, count in reasons)
    raise NotPublished(f"None of the {len(report.pages)} pages could be read: {told}. The index is as it was.")


def _gone(known: Mapping[str, Page], sitemaps: Sitemaps, report: Report, *, only: bool) -> list[PageReport]:
    """Pages that their own sitemap, read as a whole, no longer lists, that moved, or (`only`) of other sitemaps."""
    seen = {page.url for page in report.pages if page.outcome in READ or page.kept or page.outcome == "removed"}
    moved = {passed: page.url for page in report.pages for passed in page.redirects}
    gone: list[PageReport] = []
    for page in known.values():
        foreign = page.source not in sitemaps.sources
        if page.url in seen or not (only if foreign else page.source in sitemaps.complete):
            continue
        reason = "of a site that wasn't given" if foreign else "no longer listed"
        if page.fetched_url in moved:
            reason = f"moved to {moved[page.fetched_url]}"
        gone.append(PageReport(page.url, "removed", reason, language=page.language))
    return gone
