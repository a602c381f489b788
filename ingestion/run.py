"""A whole run: from sources to a published index and a report."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from app.core import spans
from app.core.errors import IndexDamaged, IndexMismatch, NotPublished, RunRefused, StoreBusy, StoreError
from app.core.log_message import LogMessage, masked
from app.core.process import peak_mb
from app.core.settings import Settings
from app.index.protocols import Draft, Generation, Store
from app.index.run_history import EndedRun, RunOrigin, RunResult, add_run, readable_runs_of
from app.models.guarded import Embedder
from ingestion.convert.prepare import without_build_dates
from ingestion.convert.reader import PageLoader
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.listing import list_pages, signed_in
from ingestion.entry import Entry, Listing, Skipped
from ingestion.options import RunOptions
from ingestion.progress import Progress
from ingestion.publish.change import Duplicates
from ingestion.publish.draft import Baseline, DryRunDraft, Removals, Writer, noindex_sources
from ingestion.publish.losses import Loss, LossCheck
from ingestion.publish.page_reader import PageProcessor, PageReader
from ingestion.publish.recipe import damage_of, live_pages, live_recipe, recipe_for, way_back
from ingestion.publish.recorded import records_of, with_earlier_roots
from ingestion.publish.site_blocks import Found, find_blocks, recorded_with, with_blocks
from ingestion.publish.translation_sets import assign_translation_sets
from ingestion.publish.turned import Turned
from ingestion.report import PageReport, Report, WrittenTexts
from ingestion.sources import Source, as_sources
from ingestion.split import open_splitter
from ingestion.split.chunker import open_chunker
from ingestion.split.embedding import BatchEmbedder, CountingEmbedder
from ingestion.urls import stem
from ingestion.workers import Workers

log = logging.getLogger("ingestion")


async def with_result_kept(store: Store, run: Coroutine[Any, Any, Report], origin: RunOrigin = RunOrigin()) -> Report:  # noqa: B008  # frozen
    """The report of the run, whose result is then kept in the store. Raises what the run raises."""
    began, at = time.monotonic(), time.time()
    result: RunResult = "failed"
    report, errors = Report(()), list[str]()
    try:
        with spans.span("ingest") as span:
            report = await run
            result, errors = report.result, report.failures
            span.note({"docs_assistant.result": result, "docs_assistant.pages": len(report.pages)})
            return report
    except BaseException as error:  # also when it is interrupted
        result = "unpublished" if isinstance(error, (NotPublished, StoreBusy)) else "failed"
        report = error.report if isinstance(error, NotPublished) and isinstance(error.report, Report) else report
        interrupted = isinstance(error, (KeyboardInterrupt, asyncio.CancelledError))
        errors = ["It was interrupted." if interrupted else str(error), *report.failures]
        raise
    finally:
        counts = {str(outcome): count for outcome, count in report.counts.items()} if report.pages else {}
        generation = report.published.id if report.published and report.changed else None
        failed = tuple(map(masked, report.failed_sources))
        ended = EndedRun(origin, at, time.monotonic() - began, result, counts, generation, failed_sources=failed)
        try:
            await add_run(store, replace(ended, errors=tuple(map(masked, errors))), report.learned)
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
    options: RunOptions = RunOptions(),  # noqa: B008  # frozen
) -> Report:
    """Update the index to what the sources list, in one atomic step.

    A source may be given by its address, or many by the name of a TOML file. They are recorded in the index. Pages of
    other sources and collections stay as they are, unless `options` say otherwise; this product's own documentation, if it
    was indexed for a first try, always leaves. An index that can't be read is built anew, as with `rebuild`: every page is
    read, and those that can't be are taken from the old index as far as possible.

    A source that can't be read, or would lose too many pages, doesn't stop the others: its pages stay as they are, and the
    report names it. Raises `SettingsError`, `SitemapError` or `NotPublished` when no source can be read, `RunRefused` (unless `force`
    is set) when too much is missing, and what the store or embedder raise; the live index is then as it was.
    """
    order = _Order(sites, store, embedder, settings, progress or Progress(), fetcher, options)
    try:
        running = order.run_until_free(time.monotonic() + options.wait)
        return await (running if options.dry_run else with_result_kept(store, running, options.origin))
    finally:
        order.progress.close()


class _Listed(NamedTuple):
    """The sources as they were given, with what lists and converts their pages."""

    given: Sequence[Source]
    client: Fetcher
    workers: Workers
    listing: Listing
    aside: dict[Source, Listing]
    """The sources that are left as they were, and what is listed of them in the next try."""


@dataclass(frozen=True, slots=True)
class _Order:
    sites: Sequence[str | Source]
    store: Store
    embedder: Embedder
    settings: Settings
    progress: Progress
    fetcher: Fetcher | None
    options: RunOptions

    async def run_until_free(self, until: float) -> Report:
        """Tries until this time while another run is writing."""
        ask = self.options.force
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
        """One try that starts before `until`. With `ask`, the embedder is asked for its dimension; else the live index has it.

        Where some of the sources would lose too much, all is read again without them.
        """
        began, aside = time.monotonic(), dict[Source, Listing]()
        while True:
            before = len(aside)
            try:
                return await self._once(aside, began, ask=ask, until=until)
            except RunRefused:
                if len(aside) == before:
                    raise

    async def _once(self, aside: dict[Source, Listing], began: float, *, ask: bool, until: float) -> Report:
        open_splitter(self.settings)  # a mistake in the settings is an error before anything is read
        given = as_sources(self.sites)
        places = tuple(source.without_login().place for source in given)
        report = Report(places, dry_run=self.options.dry_run, configured=self.settings.languages)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.TaskGroup() as group:
                    listing = group.create_task(self._list(stack, given, report, aside))
                    beginning = group.create_task(self._begun(stack, ask=ask, until=until))
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from errors
            listed, (draft, damage) = listing.result(), beginning.result()
            run = await self._prepare(stack, listed, draft, report)
            try:
                await run.publish(await run.read())
            finally:
                run.complete()
                report.warnings += self._notes(damage, run.baseline.live, report)
                report.seconds = time.monotonic() - began
        return report

    async def _list(
        self, stack: AsyncExitStack, given: Sequence[Source], report: Report, aside: dict[Source, Listing]
    ) -> _Listed:
        """Lists the sources; their passwords, headers and certificates stay with the client."""
        client = self.fetcher if self.fetcher is not None else await stack.enter_async_context(Fetcher(self.settings))
        workers = await stack.enter_async_context(Workers(page_seconds=self.settings.tuning.page_seconds))
        self.progress.stage("Reading sitemaps again" if aside else "Reading sitemaps", 0)
        known = () if self.options.rebuild else await live_pages(self.store)
        sources = signed_in(client, given)
        if not known:
            workers.warm()  # there will be pages for each
        listing = await list_pages(sources, client, workers, known, aside)
        report.failed_sources += [f"{failed.url}: {failed.reason}" for failed in listing.failed]
        report.pages += [PageReport(skipped.url, "skipped", skipped.reason) for skipped in listing.skipped]
        return _Listed(given, client, workers, listing, aside)

    async def _prepare(self, stack: AsyncExitStack, listed: _Listed, draft: Draft, report: Report) -> _Run:
        settings, client, workers = self.settings, listed.client, listed.workers
        baseline, entries = await Baseline.read(draft, self.store), without_build_dates(listed.listing.entries)
        listed = listed._replace(listing=with_earlier_roots(listed.listing, baseline.sources, settings))
        stems = frozenset(stem(entry.address) for entry in entries if not entry.is_local)
        kind = CountingEmbedder if self.options.dry_run else BatchEmbedder
        embedder = kind(self.embedder, settings.tuning.embedding_batch, settings.tuning.embedding_parallel)
        documents = PageLoader(client, workers, settings, stems)
        stack.push_async_callback(documents.close)
        chunker = open_chunker(settings, embedder, workers, baseline.states.values(), dry=self.options.dry_run)
        stack.push_async_callback(chunker.close)
        addresses = {entry.address: entry for entry in entries}
        history = await readable_runs_of(self.store)
        reader = PageReader(documents, chunker, settings, baseline.states, addresses, baseline.rebuilds, history)
        blocks = await find_blocks(entries, reader, baseline)
        report.repeated = {masked(site.url): repeated.blocks for site, repeated in blocks.items() if repeated.blocks}
        entries = with_blocks(entries, blocks)
        addresses |= {entry.address: entry for entry in entries}
        collections = frozenset(source.collection or settings.tuning.collection for source in listed.given)
        removals = Removals(baseline, listed.listing, collections, baseline.sources, self.options)
        turned = Turned(baseline, client.advice, reader, accepts=self.options.force)
        places = {address: entry.source for entry in entries for address in (entry.url, entry.address)}
        losses = LossCheck(removals.covered, settings, places, turned.reasons, history.sources)
        writer = Writer(draft, embedder, partial(_written, report, self.progress), losses.put)
        stack.push_async_callback(writer.stop)
        processor = PageProcessor(reader, writer, Duplicates.of(entries, baseline.states.values()), turned)
        return _Run(self, listed, entries, blocks, removals, draft, baseline, processor, losses, report)

    def _notes(self, damage: str, live: Generation | None, report: Report) -> list[str]:
        """Returns notes about the state before the run: a damage, and what the way back to it needs."""
        notes = [f"the index was damaged and is built again: {damage}"] if damage else []
        if live and report.changed and report.published:
            notes += way_back(live.info, report.published, self.embedder, rebuilt=self.options.rebuild or bool(damage))
        return notes

    async def _begun(self, stack: AsyncExitStack, *, ask: bool, until: float) -> tuple[Draft, str]:
        """A draft, and the damage of the live index, if any: then the draft starts empty."""
        damage = await damage_of(self.store)
        if not (self.options.rebuild or damage):
            try:
                draft = await self._draft(ask=ask, rebuild=False, until=until)
                return await stack.enter_async_context(draft), ""
            except IndexDamaged as error:
                damage = str(error)
        draft = await self._draft(ask=True, rebuild=True, until=until)
        return await stack.enter_async_context(draft), damage

    async def _draft(self, *, ask: bool, rebuild: bool, until: float) -> Draft:
        """The next generation. Raises `StoreBusy` when another run still writes at that time."""
        while True:
            live = await live_recipe(self.store)
            recipe = await recipe_for(self.embedder, self.settings, None if ask else live)
            try:
                if self.options.dry_run:
                    return DryRunDraft(None, {}) if rebuild else await DryRunDraft.begin(self.store, recipe)
                return await self.store.draft(recipe, rebuild=rebuild)
            except StoreBusy:
                left = until - time.monotonic()
                if left <= 0:
                    raise
                await asyncio.sleep(min(left, RETRY_INTERVAL))


def _written(report: Report, progress: Progress, page: PageReport) -> None:
    report.pages.append(page)
    progress.advance(note=masked(page.url))


@dataclass(frozen=True, slots=True)
class _Run:
    order: _Order
    listed: _Listed
    entries: Sequence[Entry]
    blocks: Mapping[Source, Found]
    removals: Removals
    draft: Draft
    baseline: Baseline
    processor: PageProcessor
    losses: LossCheck
    report: Report

    async def read(self) -> Mapping[str, int]:
        """Read the entries, and remove what leaves. The number of pages of each source then. Raises `NotPublished`."""
        self.order.progress.stage("Pages", len(self.entries))
        requested, held = self.processor.reader.divided(self.entries)
        await self.processor.run(requested)
        if held:
            await self.processor.run(held)
        noindex = noindex_sources(self.entries, self.report.pages)
        if self.listed.given and not self.processor.turned.of_index:
            _require_pages(self.report, noindex)
        for page in self.removals.reports(self.report):
            await self.processor.remove(self.draft, page.url)
            self.report.pages.append(page)
        await self.processor.read_again(self.draft, self.report)
        await self.processor.carry_over(self.baseline, self.report)
        pages = Counter(page.fetch.source for page in (await self.draft.page_states()).values())
        if not self.order.options.force:
            await self._refuse_losses(noindex, pages)
        self.report.translations = await assign_translation_sets(self.draft, self.order.settings)
        return pages

    async def _refuse_losses(self, noindex: Mapping[Source, str], pages: Mapping[str, int]) -> None:
        roots = self.listed.listing.roots
        losses = [Loss(reason, roots[source]) for source, reason in noindex.items()]
        losses += await self.losses.losses(self.report.pages, self.baseline.page, pages)
        self.report.refused = [loss.reason for loss in losses]
        if not losses:
            return
        self._set_aside(losses)
        raise RunRefused(
            "Nothing was published, the index is as it was:\n"
            + "".join(f"  {reason}\n" for reason in self.report.refused)
            + (f"{told}\n" if (told := self.report.other_languages_text) else "")
            + "Check the site. If it has a problem, index again when that is solved. If the changes are intended, use docs-assistant ingest --force with the same sites.",
            report=self.report,
        )

    def _set_aside(self, losses: Sequence[Loss]) -> None:
        """Add the sources that lose too much to those of the next try, if that leaves a source that can be read."""
        listing = self.listed.listing
        failed = {failure.url for failure in listing.failed}
        readable = {source: roots for source, roots in listing.roots.items() if source.url not in failed}
        reasons = {
            source: "; ".join(loss.reason for loss in losses if not roots.isdisjoint(loss.sources))
            for source, roots in readable.items()
        }
        if all(reasons.values()) or any(not loss.sources for loss in losses):
            return
        for source, reason in reasons.items():
            if reason:
                told = Skipped(source.url, f"{reason}. If that is intended, use docs-assistant ingest --force")
                self.listed.aside[source] = Listing((), (), readable[source], frozenset(), (told,))

    async def publish(self, pages: Mapping[str, int]) -> None:
        """Publish the draft, unless this is a dry run, and tell the report what later runs should know."""
        order, listing, report = self.order, self.listed.listing, self.report
        own = records_of(self.listed.given, listing, order.settings)
        records = self.removals.records(recorded_with(own, self.blocks, self.baseline.sources, order.settings))
        if isinstance(self.draft, DryRunDraft):
            report.changed = self.draft.changed
            return
        order.progress.stage("Publishing", 0)
        with spans.span("publish"):
            report.published = await self.draft.publish(records)
        before = self.baseline.live
        report.changed = before is None or report.published.id != before.info.id
        reader = self.processor.reader
        report.learned = {
            source: replace(
                runs.with_pages(pages[source], accepted=order.options.force), left_out=reader.left_out(source)
            )
            if source in listing.sources
            else runs
            for source, runs in reader.lastmods.learned(listing.complete, records).items()
        }

    def complete(self) -> None:
        processor, report = self.processor, self.report
        reader, embedder = processor.reader, processor.writer.embedder
        report.pages = [processor.duplicates.reported(page) for page in report.pages]
        report.warnings = [
            *(
                f"{site} asks that its pages aren't used for AI answers (Content-Signal: ai-input=no); they were indexed all the same"
                for site in sorted(self.listed.client.refusing)
            ),
            *(f"{note} on {count} pages" for note, count in sorted(reader.documents.notes.items())),
            *self.listed.listing.notes,
            *reader.lastmods.notes(),
        ]
        written = reader.chunker.written.items()
        report.written = {name: WrittenTexts(writer.calls, writer.failures) for name, writer in written}
        report.embedding_calls, report.embedded_texts = embedder.calls, embedder.texts
        report.memory_mb = peak_mb()


def _require_pages(report: Report, noindex: Mapping[Source, str]) -> None:
    if any(page.read for page in report.pages):
        return
    reasons = Counter(page.reason for page in report.pages).most_common(3)
    described = "; ".join(
        [*noindex.values(), *report.failed_sources, *(f"{reason} ({count})" for reason, count in reasons)]
    )
    raise NotPublished(f"No page could be read: {described.rstrip('.')}. The index is as it was.", report=report)
