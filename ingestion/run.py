"""A whole run: from sources to a published index and a report."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.core import spans
from app.core.errors import IndexDamaged, IndexMismatch, NotPublished, RunRefused, StoreBusy, StoreError
from app.core.generation import SourceRecord
from app.core.log_message import LogMessage, masked
from app.core.process import peak_mb
from app.core.settings import Settings
from app.core.types import Page
from app.index.protocols import Draft, Generation, Store
from app.index.run_history import RunResult, SourceRuns, add_run, readable_runs_of
from app.models.protocols import Embedder, for_index
from ingestion.certificates import tls_of
from ingestion.convert.prepare import without_build_dates
from ingestion.convert.reader import DocumentReader
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.listing import list_pages
from ingestion.embedding import BatchEmbedder, CountingEmbedder
from ingestion.entry import Entry, Listing
from ingestion.page_reader import PageProcessor, PageReader
from ingestion.progress import NoProgress, Progress
from ingestion.publish.change import Duplicates
from ingestion.publish.draft import Baseline, DryRunDraft, Removals, Writer, live_pages, noindex_sources
from ingestion.publish.losses import LossCheck
from ingestion.publish.turned import Turned
from ingestion.recipe import damage_of, live_recipe, recipe_for, way_back
from ingestion.recorded import records_of
from ingestion.report import PageReport, Report, WrittenTexts
from ingestion.site_blocks import find_blocks, recorded_with, with_blocks
from ingestion.sources import Source, as_sources, read_headers
from ingestion.split import open_splitter
from ingestion.split.chunker import open_chunker
from ingestion.translation_sets import assign_translation_sets
from ingestion.urls import stem
from ingestion.workers import Workers

log = logging.getLogger("ingestion")


async def with_result_kept(store: Store, run: Coroutine[Any, Any, Report]) -> Report:
    """The report of the run, whose result is then kept in the store. Raises what the run raises."""
    began = time.monotonic()
    result: RunResult = "failed"
    learned: Mapping[str, SourceRuns] | None = None
    try:
        with spans.span("ingest") as span:
            report = await run
            result, learned = report.result, report.learned
            span.note({"docs_assistant.result": result, "docs_assistant.pages": len(report.pages)})
    except (NotPublished, StoreBusy):
        result = "unpublished"
        raise
    else:
        return report
    finally:
        try:
            await add_run(store, result, time.monotonic() - began, learned)
        except StoreError as error:  # the result matters less than the run, which may have failed for the same reason
            log.warning(LogMessage("result of the run not kept", result=result, error=str(error)))


RETRY_INTERVAL = 5.0  # seconds between two tries to become the one that writes


async def ingest(  # noqa: PLR0913  # the parts are handed in, each by name
    sites: Sequence[str | Source],
    *,
    store: Store,
    embedder: Embedder,
    settings: Settings,
    progress: Progress | None = None,
    fetcher: Fetcher | None = None,
    only: bool = False,
    replace: bool = False,
    force: bool = False,
    dry_run: bool = False,
    rebuild: bool = False,
    supersede: bool = False,
    wait: float = 0.0,
) -> Report:
    """Update the index to what the sources list, in one atomic step.

    A source may be given by its address, or many by the name of a TOML file. They are recorded in the index. Pages of
    other sources and collections stay as they are; with `only`, pages of the sources' collections that aren't theirs leave
    the index, with `replace` those of all collections, and always this product's own documentation, if it was indexed for
    a first try. Another run is waited for `wait` seconds. A `dry_run` writes nothing, and its report says what a real one
    would do. An index that can't be read is built anew, as with `rebuild`: every page is read, and those that can't be are
    taken from the old index as far as possible. With `supersede`, a rollback goes back behind the live generation.

    Raises `SettingsError`, `SitemapError` or `NotPublished` when the sources can't be read, `RunRefused` (unless `force`
    is set) when too much is missing, and what the store or embedder raise; the live index is then as it was.
    """
    how = _Options(only, replace, force, dry_run, rebuild, supersede)
    request = _Request(sites, store, embedder, settings, progress or NoProgress(), fetcher, how)
    until = time.monotonic() + wait
    try:
        running = request.run_until_free(until)
        return await (running if dry_run else with_result_kept(store, running))
    finally:
        request.progress.close()


@dataclass(frozen=True, slots=True)
class _Options:
    only: bool
    replace: bool
    force: bool
    dry_run: bool
    rebuild: bool
    supersede: bool


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of `ingest`."""

    sites: Sequence[str | Source]
    store: Store
    embedder: Embedder
    settings: Settings
    progress: Progress
    fetcher: Fetcher | None
    how: _Options

    async def run_until_free(self, until: float) -> Report:
        """Tries until this time while another run is writing."""
        ask = self.how.force
        while True:
            try:
                return await self.run(ask=ask, until=until)
            except IndexMismatch:
                if ask:
                    raise
                ask = True  # the embedder's name is the same, its vectors aren't: a rebuild, then
            except StoreBusy:
                if time.monotonic() >= until:
                    raise  # another run has written meanwhile: compare with its result

    async def run(self, *, ask: bool, until: float) -> Report:
        """One try that starts before `until`. With `ask`, the embedder is asked for its dimension; else the live index has it."""
        began, settings = time.monotonic(), self.settings
        open_splitter(settings)  # a mistake in the settings is an error before anything is read
        configured = as_sources(self.sites)
        sources = tuple(source.without_login() for source in configured)
        report = Report(
            tuple(source.place for source in sources), dry_run=self.how.dry_run, configured=settings.languages
        )
        async with AsyncExitStack() as stack:
            client = self.fetcher if self.fetcher is not None else await stack.enter_async_context(Fetcher(settings))
            workers = await stack.enter_async_context(Workers())
            self.progress.stage("Reading sitemaps", 0)
            known = () if self.how.rebuild else await live_pages(self.store)
            listed = await _listed(configured, client, workers, known)
            _tell(report, listed)
            begun, chosen, damage = await self._begun(ask=ask, until=until)
            draft = await stack.enter_async_context(begun)
            baseline, entries = await Baseline.read(draft, self.store), without_build_dates(listed.entries)
            kind = CountingEmbedder if self.how.dry_run else BatchEmbedder
            embedder = kind(chosen, settings.tuning.embedding_batch, settings.tuning.embedding_parallel)
            documents = DocumentReader(client, workers, settings, _stems(entries))
            chunker = open_chunker(settings, embedder, workers, baseline.states.values(), dry=self.how.dry_run)
            addresses = {entry.address: entry for entry in entries}
            runs = await readable_runs_of(self.store)
            page_reader = PageReader(documents, chunker, settings, baseline.states, addresses, baseline.rebuilds, runs)
            reader = await stack.enter_async_context(page_reader)
            repeated = await find_blocks(entries, reader, baseline)
            report.repeated = {masked(site.url): of_site.blocks for site, of_site in repeated.items() if of_site.blocks}
            entries = with_blocks(entries, repeated)
            addresses |= {entry.address: entry for entry in entries}
            collections = frozenset(source.collection or settings.tuning.collection for source in sources)
            removals = Removals(baseline, listed, collections, baseline.sources, self.how.only, self.how.replace)
            turned = Turned(baseline, client.advice, reader.nowhere, accepts=self.how.force)
            losses = LossCheck(removals.covered, settings, turned.reasons, runs.sources)
            writer = Writer(draft, embedder, partial(_written, report, self.progress), losses.put)
            processor = PageProcessor(reader, writer, Duplicates.of(entries, baseline.states.values()), turned)
            run = _Run(draft, baseline, processor, losses, report, self.progress)
            try:
                pages = await run.over(entries, removals, force=self.how.force)
                own = recorded_with(records_of(configured, listed, settings), repeated, baseline.sources, settings)
                await run.publish(removals.records(own), listed, pages, supersede=self.how.supersede)
            finally:
                _complete(report, processor, client)
                report.warnings += [*listed.notes, *reader.lastmods.notes()]
                report.warnings += self._notes(damage, baseline.live, report)
                report.seconds = time.monotonic() - began
        return report

    def _notes(self, damage: str, live: Generation | None, report: Report) -> list[str]:
        """Returns notes about the state before the run: a damage, and what the way back to it needs."""
        notes = [f"the index was damaged and is built again: {damage}"] if damage else []
        if live and report.changed and report.published and not self.how.supersede:
            notes += way_back(live.info, report.published, self.embedder, rebuilt=self.how.rebuild or bool(damage))
        return notes

    async def _begun(self, *, ask: bool, until: float) -> tuple[Draft, Embedder, str]:
        """A draft, its embedder, and the damage of the live index, if any: then the draft starts empty."""
        damage = await damage_of(self.store)
        if self.how.rebuild or damage:
            return *await self._draft(ask=True, rebuild=True, until=until), damage
        try:
            return *await self._draft(ask=ask, rebuild=False, until=until), ""
        except IndexDamaged as error:
            return *await self._draft(ask=True, rebuild=True, until=until), str(error)

    async def _draft(self, *, ask: bool, rebuild: bool, until: float) -> tuple[Draft, Embedder]:
        """Among several embedders, that of the live index is used, which another run may replace meanwhile.

        Raises `StoreBusy` when another run still writes at that time.
        """
        while True:
            live = await live_recipe(self.store)
            embedder = for_index(self.embedder, live.embedder if live is not None else "")
            recipe = await recipe_for(embedder, self.settings, None if ask else live)
            try:
                if self.how.dry_run:
                    return DryRunDraft(None, {}) if rebuild else await DryRunDraft.begin(self.store, recipe), embedder
                return await self.store.draft(recipe, rebuild=rebuild), embedder
            except StoreBusy:
                seconds = until - time.monotonic()
                if seconds <= 0:
                    raise
                await asyncio.sleep(min(seconds, RETRY_INTERVAL))


async def _listed(given: Sequence[Source], client: Fetcher, workers: Workers, known: Sequence[Page]) -> Listing:
    """Lists the sources; their passwords, headers and certificates stay with the client."""
    for source, tls in zip(given, tls_of(given), strict=True):
        client.sign_in(source.requested, read_headers(source.headers, masked(source.place)), tls)
    return await list_pages([source.without_login() for source in given], client, workers, known)


def _stems(entries: Sequence[Entry]) -> frozenset[str]:
    return frozenset(stem(entry.address) for entry in entries if not entry.is_local)


def _tell(report: Report, listed: Listing) -> None:
    report.failed_sources += [f"{failure.url}: {failure.reason}" for failure in listed.failed]
    report.pages += [PageReport(skip.url, "skipped", skip.reason) for skip in listed.skipped]


def _written(report: Report, progress: Progress, page: PageReport) -> None:
    report.pages.append(page)
    progress.advance(note=masked(page.url))


def _complete(report: Report, processor: PageProcessor, client: Fetcher) -> None:
    """Complete the report at the end of a run, also after an error."""
    reader, embedder = processor.reader, processor.writer.embedder
    report.pages = [processor.duplicates.reported(page) for page in report.pages]
    report.warnings = _warnings(client, reader.documents.notes)
    report.written = {
        name: WrittenTexts(writer.calls, writer.failures) for name, writer in reader.chunker.written.items()
    }
    report.embedding_calls, report.embedded_texts = embedder.calls, embedder.texts
    report.memory_mb = peak_mb()


@dataclass(frozen=True, slots=True)
class _Run:
    """The parts of one run."""

    draft: Draft
    baseline: Baseline
    processor: PageProcessor
    losses: LossCheck
    report: Report
    progress: Progress

    async def over(self, entries: Sequence[Entry], removals: Removals, *, force: bool) -> Mapping[str, int]:
        """Read the entries, and remove what leaves. The number of pages of each source then. Raises `NotPublished`."""
        self.progress.stage("Pages", len(entries))
        requested, held = self.processor.reader.divided(entries)
        await self.processor.run(requested)
        if held:
            await self.processor.run(held)
        noindex = noindex_sources(entries, self.report.pages)
        if not self.processor.turned.reasons:
            _require_pages(self.report, noindex)
        for page in removals.reports(self.report):
            await self.processor.remove(self.draft, page.url)
            self.report.pages.append(page)
        await self.processor.read_again(self.draft, self.report)
        await self.processor.carry_over(self.baseline, self.report)
        pages = Counter(page.source for page in (await self.draft.page_states()).values())
        if not force:
            await self._refuse_losses(noindex, pages)
        self.report.translations = await assign_translation_sets(
            self.draft, self.baseline, self.processor.reader.settings
        )
        return pages

    async def _refuse_losses(self, noindex: Sequence[str], pages: Mapping[str, int]) -> None:
        async def read_old(url: str) -> Page | None:
            return await self.baseline.page(url)

        self.report.refused = [*noindex, *await self.losses.reasons(self.report.pages, read_old, pages)]
        if self.report.refused:
            raise RunRefused(
                "Nothing was published, the index is as it was:\n"
                + "".join(f"  {reason}\n" for reason in self.report.refused)
                + (f"{told}\n" if (told := self.report.other_languages_text) else "")
                + "Check the site. If it has a problem, index again when that is solved. If the changes are intended, use docs-assistant ingest --force with the same sites.",
                report=self.report,
            )

    async def publish(
        self, records: Sequence[SourceRecord], listed: Listing, pages: Mapping[str, int], *, supersede: bool
    ) -> None:
        """Publish the draft, unless this is a dry run, and tell the report what later runs should know."""
        if isinstance(self.draft, DryRunDraft):
            self.report.changed = self.draft.changed
            return
        self.progress.stage("Publishing", 0)
        processor = self.processor
        with spans.span("publish"):
            published = self.report.published = await self.draft.publish(records, supersede=supersede)
        before = self.baseline.live
        self.report.changed = before is None or published.id != before.info.id
        self.report.learned = {
            source: runs.with_pages(pages[source], accepted=processor.turned.accepts)
            if source in listed.sources
            else runs
            for source, runs in processor.reader.lastmods.learned(listed.complete, records).items()
        }


def _require_pages(report: Report, noindex: Sequence[str]) -> None:
    if any(page.read for page in report.pages):
        return
    reasons = Counter(page.reason for page in report.pages).most_common(3)
    described = "; ".join([*noindex, *report.failed_sources, *(f"{reason} ({count})" for reason, count in reasons)])
    raise NotPublished(f"No page could be read: {described.rstrip('.')}. The index is as it was.", report=report)


def _warnings(fetcher: Fetcher, notes: Counter[str]) -> list[str]:
    """Messages for the operator about whole sites."""
    refusing = [
        f"{site} asks that its pages aren't used for AI answers (Content-Signal: ai-input=no); they were indexed all the same"
        for site in sorted(fetcher.refusing)
    ]
    return refusing + [f"{note} on {count} pages" for note, count in sorted(notes.items())]
