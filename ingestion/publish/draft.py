"""A draft of the index: what was in the index before, what leaves it, and what is written, or only counted in a dry run."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from app.core.errors import NoIndex, StoreError, StoreUnavailable
from app.core.generation import GenerationInfo, Recipe, SourceRecord
from app.core.log_message import LogMessage, masked
from app.core.types import Chunk, Page, Vector
from app.index.protocols import Draft, Generation, Store
from app.index.ranking.units import means, texts_to_embed
from ingestion.convert.prepare import Prepared
from ingestion.crawl.exchange import IGNORE
from ingestion.entry import Entry, Listing
from ingestion.errors import NOINDEX
from ingestion.options import RunOptions
from ingestion.publish.change import PageChange
from ingestion.publish.recipe import recorded_of_damaged
from ingestion.report import PageReport, Report
from ingestion.sources import Source
from ingestion.split.embedding import BatchEmbedder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The pages that the index has before a run, by public address.

    `rebuilds` is True when the draft can't share the live generation, so that every page must be written again.
    `sources` are those of the live generation, also if its pages can't be read.
    """

    states: Mapping[str, Page]
    rebuilds: bool
    live: Generation | None
    sources: tuple[SourceRecord, ...] = ()

    @classmethod
    async def read(cls, draft: Draft, store: Store) -> Baseline:
        """The pages of the draft, or of the live generation where the draft starts empty."""
        try:
            live = await store.live()
            states = {page.url: page for page in await live.pages()} if draft.rebuilds else await draft.page_states()
            return cls(states, draft.rebuilds, live, live.info.sources)
        except NoIndex:
            return cls({}, rebuilds=True, live=None)
        except StoreUnavailable:
            raise
        except StoreError as error:
            if not draft.rebuilds:
                raise
            log.warning("the old index can't be read, its pages are unknown: %s", error)
            return cls({}, rebuilds=True, live=None, sources=await recorded_of_damaged(store))

    async def page(self, url: str) -> Page | None:
        """The page with its Markdown from the live generation; None when it is missing or can't be read."""
        try:
            return await self.live.page(url) if self.live else None
        except StoreError as error:
            self._unreadable(url, error)
            return None

    async def cut(self, page: Page) -> Prepared | None:
        """The page with its chunks and their places in the live generation; None when they are missing or can't be read."""
        try:
            chunks = (await self.live.chunks_of([page.url])).get(page.url) if self.live else None
            plain = (await self.live.plain_texts([page.url])).get(page.url) if self.live else None
        except StoreError as error:
            self._unreadable(page.url, error)
            return None
        if not chunks:
            return None
        return Prepared(replace(page, derived=replace(page.derived, plain=plain or page.derived.plain)), chunks)

    def _unreadable(self, url: str, error: StoreError) -> None:
        """Raises the error unless it is a damage of the index that is built anew."""
        if isinstance(error, StoreUnavailable) or not self.rebuilds:
            raise error
        log.warning(LogMessage("a page of the old index can't be read", url=url, error=error))


OTHER_SITE = "of a site that wasn't given"
OWN_DOCUMENTATION = "our own documentation, which was for a first try"
REMOVED_SITE = "the site was removed"


@dataclass(frozen=True, slots=True)
class Removals:
    """The removals of a run that fills these `collections` and `listed` the pages of its sources.

    `before` are the sources of the index; the options of the run say what else leaves it.
    """

    baseline: Baseline
    listed: Listing
    collections: frozenset[str]
    before: Sequence[SourceRecord]
    options: RunOptions

    @property
    def covered(self) -> list[Page]:
        """Pages that earlier runs read from these sources, so that this run can lose them."""
        known = self.baseline.states.values()
        return [
            page for page in known if page.collection in self.collections and page.fetch.source in self.listed.sources
        ]

    def reports(self, report: Report) -> list[PageReport]:
        """The pages to remove after a run with this report, each with the reason."""
        seen = {p.url for p in report.pages if p.read or p.kept or p.outcome == "removed"}
        moved = {passed: page.url for page in report.pages for passed in page.redirects}
        gone: list[PageReport] = []
        for page in self.baseline.states.values():
            if page.url in seen or not (reason := self._reason(page.fetch.source, page.collection)):
                continue
            if page.fetch.fetched_url in moved and page.collection in self.collections:
                reason = f"moved to {moved[page.fetch.fetched_url]}"
            site = page.fetch.source if reason in (OTHER_SITE, OWN_DOCUMENTATION, REMOVED_SITE) else ""
            gone.append(PageReport(page.url, "removed", reason, language=page.language, site=site))
        return gone

    def records(self, now: Sequence[SourceRecord]) -> tuple[SourceRecord, ...]:
        """The sources of the index after the run, which read those of `now`."""
        read = {(record.collection, root) for record in now for root in record.roots}
        records: list[SourceRecord] = []  # in the same order, so that a run of some of them changes nothing
        for record in self.before:
            if same := [new for new in now if new.options == record.options]:
                records += same
            elif not all(
                (record.collection, root) in read or self._gives_way(root, record.collection) for root in record.roots
            ):
                records.append(record)
        return (*records, *(record for record in now if record not in records))

    def _reason(self, root: str, collection: str) -> str:
        """The reason why a page of this source that wasn't read leaves; empty if it stays."""
        if root in self.listed.sources:
            return "no longer listed" if root in self.listed.complete and collection in self.collections else ""
        return self._gives_way(root, collection)

    def _gives_way(self, root: str, collection: str) -> str:
        if root in self.listed.sources:
            return ""
        of_root = [record for record in self.before if record.collection == collection and root in record.roots]
        if any(record.url in self.options.removed for record in of_root):
            return REMOVED_SITE
        if any(record.demo for record in of_root):
            return OWN_DOCUMENTATION
        if any(record.url in self.options.paused for record in of_root):
            return ""
        return OTHER_SITE if self.options.replace or (self.options.only and collection in self.collections) else ""


def noindex_sources(entries: Sequence[Entry], pages: Iterable[PageReport]) -> Mapping[Source, str]:
    """A message for each source of which no page was read, because most of them say `noindex`."""
    source_of = {url: entry.site for entry in entries for url in (entry.url, entry.address)}
    listed = Counter(entry.site for entry in entries)
    said: Counter[Source] = Counter()
    for page in pages:
        if (source := source_of.get(page.url)) is None:
            continue
        if page.read:
            del listed[source]
        elif page.reason == NOINDEX:
            said[source] += 1
    return {
        source: f"{masked(source.place)}: {said[source]} of its {count} pages say noindex, and none was read: {IGNORE}"
        for source, count in listed.items()
        if 2 * said[source] > count
    }


class DryRunDraft:
    """See `app.index.protocols.Draft`. It takes no lock, so it also runs beside a real one."""

    def __init__(self, live: Generation | None, pages: Mapping[str, Page]) -> None:
        self._live = live
        self._pages = dict(pages)
        self._rebuilds = not pages
        self._chunks = frozenset(id_ for page in pages.values() for id_ in page.derived.chunk_ids)
        self.changed = False
        """True when a real draft would become a generation."""

    @classmethod
    async def begin(cls, store: Store, recipe: Recipe) -> DryRunDraft:
        """A dry run of what `store.draft` would begin."""
        try:
            live = await store.live()
        except NoIndex:
            return cls(None, {})
        shared = live.info.recipe == recipe
        return cls(live, {page.url: page for page in await live.pages()} if shared else {})

    @property
    def rebuilds(self) -> bool:
        """True when nothing could be shared with the live generation."""
        return self._rebuilds

    async def page_states(self) -> Mapping[str, Page]:
        """The pages as a real draft would have them."""
        return dict(self._pages)

    async def missing(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """Returns the chunks that would have to be embedded."""
        return tuple(chunk for chunk in chunks if chunk.id not in self._chunks)

    async def put(self, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> None:  # noqa: ARG002
        """Only remembers that something would change."""
        self.changed = True
        self._pages[page.url] = replace(page, markdown="")

    async def remove(self, url: str) -> None:
        """Only remembers that something would change."""
        self.changed |= self._pages.pop(url, None) is not None

    async def touch(self, pages: Iterable[Page]) -> None:
        """Only remembers whether a translation set would change."""
        for page in pages:
            if page.url in self._pages:
                self.changed |= self._pages[page.url].derived.translation_set != page.derived.translation_set
                self._pages[page.url] = page

    async def publish(self, sources: Sequence[SourceRecord] = ()) -> GenerationInfo:  # noqa: ARG002
        """Never: nothing is there to be published."""
        raise StoreError("A dry run publishes nothing: run it without --dry-run.")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to let go of."""


_Waiting = list[tuple[PageChange, Collection[str]]]  # each with the keys of its texts


@dataclass
class Writer:
    """Writes changes to a draft. Those with new texts wait until a full round of embedding calls is possible, and a round is
    embedded while the one before it is written.

    `written` is called with the report of each address, `put` with each page and its Markdown.
    """

    draft: Draft
    embedder: BatchEmbedder
    written: Callable[[PageReport], None]
    put: Callable[[Page], None]
    _waiting: _Waiting = field(default_factory=list)
    _texts: dict[str, str] = field(default_factory=dict)
    _round: asyncio.Task[None] | None = None

    async def write(self, change: PageChange) -> None:
        """Write one change. Changes without new texts may be written earlier than others before them."""
        if change.put is None:
            await self._record(change)
            return
        texts = texts_of(change.put, await self.draft.missing(change.put.chunks))
        self._waiting.append((change, texts.keys()))
        self._texts |= texts
        if len(self._texts) >= self.embedder.batch * self.embedder.parallel:
            await self._begin_round()

    async def flush(self) -> None:
        """Embed and write all that waits."""
        await (await self._begin_round())

    async def stop(self) -> None:
        """Write nothing more."""
        if self._round:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)

    async def _begin_round(self) -> asyncio.Task[None]:
        """Begin to embed and write all that waits, and wait until the round before is written."""
        waiting, texts, before = self._waiting, self._texts, self._round
        self._waiting, self._texts = [], {}
        this = self._round = asyncio.create_task(self._write_round(waiting, texts, before))
        if before:
            await before
        return this

    async def _write_round(
        self, waiting: _Waiting, texts: Mapping[str, str], before: asyncio.Task[None] | None
    ) -> None:
        vectors = await self.embedder.embed(texts)
        if before:
            await before
        for change, keys in waiting:
            if change.put is not None:
                own = {key: vectors[key] for key in keys if key in vectors}
                own |= means(change.put.chunks, own, texts)
                await self.draft.put(change.put.page, change.put.chunks, own)
                self.put(change.put.page)
            await self._record(change)

    async def _record(self, change: PageChange) -> None:
        if change.touch is not None:
            await self.draft.touch((change.touch,))
        if change.remove:
            await self.draft.remove(change.remove)
        if change.report is not None:
            self.written(change.report)


def texts_of(put: Prepared, missing: Sequence[Chunk]) -> dict[str, str]:
    """Returns texts that `Draft.put` needs vectors of, by key: stretches of missing chunks, questions of all chunks, the page's
    summary.
    """
    texts = dict[str, str]()
    for chunk in missing:
        texts |= texts_to_embed(chunk)
    texts |= {chunk.questions_id: chunk.questions_text for chunk in put.chunks if chunk.questions}
    return texts | ({put.page.url: put.page.summary_text} if put.page.summary_text else {})
