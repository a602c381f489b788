"""The whole flow: sources -> fetch -> convert -> language -> split -> embed -> draft -> publish, with its report."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from app.core.analysis import ANALYZER
from app.core.errors import NoIndex, NotPublished
from app.core.models.base import Embedder
from app.core.settings import Settings
from app.core.store.base import Draft, Generation, Store
from app.core.types import Page, Recipe
from ingestion.addresses import own_address
from ingestion.convert import VERSION
from ingestion.dates import without_build_dates
from ingestion.embed import Embedding
from ingestion.fetch import Fetcher, host
from ingestion.listing import list_pages
from ingestion.prepare import Prepared
from ingestion.progress import Progress, Silent
from ingestion.read import Change, Reader
from ingestion.report import PageReport, Report
from ingestion.sitemap import Entry, Sitemaps
from ingestion.sources import Source, as_sources
from ingestion.split import open_splitter
from ingestion.summaries import summaries_name
from ingestion.twins import Twins
from ingestion.write import Writer

READAHEAD = 32
"""Read pages that may wait for the writer: keeps memory flat when embedding is slower than fetching."""


async def ingest(  # noqa: PLR0913  # the parts are handed in, each by name
    sites: Sequence[str | Source],
    *,
    store: Store,
    embedder: Embedder,
    settings: Settings,
    progress: Progress | None = None,
    fetcher: Fetcher | None = None,
    only: bool = False,
) -> Report:
    """Bring the index in line with what the sources list, in one atomic step, and say what was done.

    A source may be given by its address, or many by the name of a TOML file. Pages of other sources and collections
    stay as they are; with `only`, the pages of the sources' collections that aren't theirs leave the index. Raises
    `SettingsError`, `SitemapError` or `NotPublished` when the sources can't be read, and what the store or embedder
    raise; the live index is then as it was.
    """
    began, progress = time.monotonic(), progress or Silent()
    sources = as_sources(sites)
    report = Report(tuple(source.directory or source.url for source in sources))
    async with AsyncExitStack() as stack:
        stack.callback(progress.close)
        client = fetcher if fetcher is not None else await stack.enter_async_context(Fetcher(settings))
        progress.stage("Reading sitemaps", 0)
        listed = await list_pages(sources, client)
        report.pages += [PageReport(skipped.url, "skipped", skipped.reason) for skipped in listed.skipped]
        draft = await stack.enter_async_context(await store.draft(await recipe_for(embedder, settings)))
        base = await _Base.read(draft, store)
        entries = without_build_dates(listed.entries)
        embedding = Embedding(embedder, settings.embedding_batch, settings.embedding_parallel)
        reader = await stack.enter_async_context(base.reader(client, settings, embedding, entries))

        def written(page: PageReport) -> None:
            report.pages.append(page)
            progress.advance(note=page.url)

        flow = _Flow(reader, Writer(draft, embedding, written), Twins.of(entries, base.states.values()))
        progress.stage("Pages", len(entries))
        await flow.run(entries)
        _refuse_nothing(report)
        await _remove(_gone(_known(base, sources, settings), listed, report, only=only), draft, flow, report)
        await flow.read_again(draft, report)
        await base.carry_over(flow.writer, report, reader)
        progress.stage("Publishing", 0)
        report.published = await draft.publish()
    report.pages = [flow.twins.told(page) for page in report.pages]
    report.warnings, report.summary_calls = _warnings(client, reader), reader.summary_calls
    report.embedding_calls, report.embedded_texts = embedding.calls, embedding.texts
    report.seconds = time.monotonic() - began
    return report


def _known(base: _Base, sources: Sequence[Source], settings: Settings) -> list[Page]:
    """Pages of the collections that these sources fill."""
    collections = {source.within(settings).collection for source in sources}
    return [page for page in base.states.values() if page.collection in collections]


async def _remove(pages: Sequence[PageReport], draft: Draft, flow: _Flow, report: Report) -> None:
    for gone in pages:
        await draft.remove(gone.url)
        flow.twins.forget(gone.url)
        report.pages.append(gone)


async def recipe_for(embedder: Embedder, settings: Settings) -> Recipe:
    """How an index is made with these settings: another recipe builds it anew."""
    return Recipe(
        embedder=embedder.name,
        dimension=await embedder.dimension(),
        splitter=f"{VERSION}/{open_splitter(settings).name}",
        analyzer=ANALYZER,
        summaries=summaries_name(settings),
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
        listed = frozenset(own_address(entry) for entry in entries)
        return Reader(fetcher, settings, embedding, self.states, listed, fresh=self.rebuilds)

    async def carry_over(self, writer: Writer, report: Report, reader: Reader) -> None:
        """Put the pages that this run didn't read, from the Markdown that the live generation has."""
        if self.live is None:
            return
        done = {p.url for p in report.pages if p.outcome == "removed" or p.read}
        for url in self.states:
            page = await self.live.page(url) if url not in done else None
            if page is not None:
                put = Prepared(page) if page.same_as else await reader.finished(Prepared(page))
                await writer.write(Change(None, put=put))
        await writer.flush()


@dataclass(frozen=True, slots=True)
class _Flow:
    """Entries -> the draft: reading, merging of equal texts, writing."""

    reader: Reader
    writer: Writer
    twins: Twins

    async def run(self, entries: Sequence[Entry]) -> None:
        """Read and write all entries side by side."""
        queue: asyncio.Queue[Change | None] = asyncio.Queue(READAHEAD)
        waiting = iter(entries)
        hosts = len({host(entry.url) for entry in entries})

        async def read() -> None:
            for entry in waiting:
                await queue.put(await self.reader.read(entry))

        async def write() -> None:
            while (change := await queue.get()) is not None:
                for merged in self.twins.merged(change):
                    await self.writer.write(merged)
            await self.writer.flush()

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(write())
                # two more than may fetch: they wait for conversion meanwhile
                count = self.reader.settings.crawl_parallel * hosts + 2
                await asyncio.gather(*(group.create_task(read()) for _ in range(count)))
                await queue.put(None)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def read_again(self, draft: Draft, report: Report) -> None:
        """Read the pages whose place in the index turned out wrong when all others were known."""
        disputed = self.reader.disputed()
        for _, url in disputed:
            await draft.remove(url)
            self.twins.forget(url)
        again = [*disputed, *self.twins.orphans()]
        if again:
            urls = {url for _, url in again}
            report.pages[:] = [page for page in report.pages if page.url not in urls]
            entries = [entry for entry, _ in again]
            self.reader.again(entries)
            await self.run(entries)


def _refuse_nothing(report: Report) -> None:
    if any(page.read for page in report.pages):
        return
    reasons = Counter(page.reason for page in report.pages).most_common(3)
    told = "; ".join(f"{reason} ({count})" for reason, count in reasons)
    raise NotPublished(f"None of the {len(report.pages)} pages could be read: {told}. The index is as it was.")


def _gone(known: Sequence[Page], sitemaps: Sitemaps, report: Report, *, only: bool) -> list[PageReport]:
    """Pages that their own sitemap, read as a whole, no longer lists, that moved, or (`only`) of other sitemaps."""
    seen = {p.url for p in report.pages if p.read or p.kept or p.outcome == "removed"}
    moved = {passed: page.url for page in report.pages for passed in page.redirects}
    gone: list[PageReport] = []
    for page in known:
        foreign = page.source not in sitemaps.sources
        if page.url in seen or not (only if foreign else page.source in sitemaps.complete):
            continue
        reason = "of a site that wasn't given" if foreign else "no longer listed"
        if page.fetched_url in moved:
            reason = f"moved to {moved[page.fetched_url]}"
        gone.append(PageReport(page.url, "removed", reason, language=page.language))
    return gone


def _warnings(fetcher: Fetcher, reader: Reader) -> list[str]:
    """What the operator should know of whole sites."""
    refusing = [
        f"{site} asks that its pages aren't used for AI answers (Content-Signal: ai-input=no); they were indexed all the same"
        for site in sorted(fetcher.refusing)
    ]
    return refusing + [f"{note} on {count} pages" for note, count in sorted(reader.notes.items())]
