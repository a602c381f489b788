"""The next generation, written as rows that readers of the live generation don't see."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

from app.core.errors import NoIndex, StoreError
from app.core.generation import GenerationInfo, SourceRecord
from app.core.types import Chunk, Page, Vector
from app.index.drafts import DraftPages, check_vectors
from app.index.opensearch.catalog import Catalog, Published, State
from app.index.opensearch.connection import Connection
from app.index.opensearch.rows import (
    chunk_row,
    chunk_row_id,
    page_record,
    page_row,
    page_row_id,
    searched,
    set_of,
    to_chunk,
    to_page,
)
from app.index.opensearch.writing import Batch, Rows, WriterLock, delete_rows, discard, reopen_rows, searched_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a draft. `base` is the generation it starts from; `target` has the indices it writes to.

    `replaces_all`: drops all earlier generations when it is published; they may be unreadable.
    """

    live: Published | None
    base: Published | None
    target: Published
    state: State
    keep: int
    replaces_all: bool = False

    @property
    def id(self) -> int:
        """The number of the new generation."""
        return self.target.info.id


class OpenSearchDraft(DraftPages):
    """See `app.index.protocols.Draft`. Calls `published` after it has moved the pointer."""

    def __init__(
        self, connection: Connection, catalog: Catalog, lock: WriterLock, plan: Plan, published: Callable[[], None]
    ) -> None:
        live = plan.live.info if plan.live else None
        super().__init__(plan.target.info.recipe, live, rebuilds=plan.base is None)
        self._published = published
        self._connection = connection
        self._catalog = catalog
        self._lock = lock
        self._plan = plan
        making = None if plan.base else asyncio.create_task(catalog.make(plan.target))
        self._batch = Batch(connection, lock, making)
        self._base: dict[str, tuple[str, Page]] = {}
        self._put: set[str] = set()
        self._moved: set[str] = set()
        self._removed: set[str] = set()
        self._touched: dict[str, Page] = {}
        self._wrote = plan.base is None

    async def load(self) -> None:
        """Read the page records that the draft starts from."""
        base = self._plan.base
        if base is not None:
            sources = Rows(self._connection, base.info.id).all(base.pages, leave_out=("markdown", "plain"))
            self._base = {source["metadata"]["url"]: (row_id, to_page(source)) async for row_id, source in sources}
            self._pages = {url: page for url, (_, page) in self._base.items()}
            self._base_chunks = frozenset(id_ for _, page in self._base.values() for id_ in page.derived.chunk_ids)

    async def put(self, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> None:
        """Add the page, or replace its chunks with these."""
        async with self._writing:
            self._check_open()
            check_vectors(self._recipe, page, chunks, vectors, self._base_chunks)
            self._wrote = True
            if page.url in self._put or page.url in self._removed:
                await self._revert(page.url)
            known = await self._known(page.url)
            changed = [
                chunk for chunk in chunks if chunk.id not in known or known[chunk.id][1].kept(0) != chunk.kept(0)
            ]
            kept = await searched_of(
                self._connection, self._plan.target.chunks, [known[c.id][0] for c in changed if c.id in known]
            )
            self._put.add(page.url)
            self._removed.discard(page.url)
            self._touched.pop(page.url, None)
            leaving = known.keys() - {c.id for c in chunks} | {c.id for c in changed if c.id in known}
            for id_ in sorted(leaving):
                await self._end(self._plan.target.chunks, known[id_][0])
            for chunk in changed:
                found_by = kept[known[chunk.id][0]] if chunk.id in known else searched(chunk, vectors)
                row = chunk_row(chunk, found_by, vectors.get(chunk.questions_id), self._plan.id)
                await self._batch.index(self._plan.target.chunks, chunk_row_id(chunk.id, self._plan.id), row)
            if page.url in self._base:
                await self._end(self._plan.target.pages, self._base[page.url][0])
            summary = vectors[page.url] if self._recipe.summaries and page.summary_text else None
            record = page_row(page, tuple(c.id for c in chunks), summary, self._plan.id)
            await self._batch.index(self._plan.target.pages, page_row_id(page.url, self._plan.id), record)
            self._pages[page.url] = page.without_texts(tuple(c.id for c in chunks))
            self._moved.discard(page.url)

    async def remove(self, url: str) -> None:
        """Remove the page and its chunks."""
        async with self._writing:
            self._check_open()
            if url in self._put:
                await self._revert(url)
            self._touched.pop(url, None)
            self._pages.pop(url, None)
            if url in self._base and url not in self._removed:
                self._wrote = True
                self._removed.add(url)
                for row_id, _ in (await self._known(url)).values():
                    await self._end(self._plan.target.chunks, row_id)
                await self._end(self._plan.target.pages, self._base[url][0])

    def _note_touched(self, page: Page, *, changed: bool, moved: bool) -> None:  # noqa: ARG002
        self._touched[page.url] = page
        if moved:
            self._moved.add(page.url)

    async def publish(self, sources: Sequence[SourceRecord] = ()) -> GenerationInfo:
        """Make the draft live in one atomic step."""
        async with self._writing:
            self._check_open()
            self._sources = tuple(sources) or self._sources
            await self._compare()
            if not (self._put or self._removed or self._moved):
                return await self._keep_live()
            self._wrote = True
            await self._write_touched()
            await self._batch.flush()
            target = self._plan.target
            for index in (target.chunks, target.pages):
                await self._batch.refresh(index)
            await self._catalog.check_health(target)
            published = replace(target, info=self._described(self._plan.id))
            state = self._plan.state.with_generation(published, self._plan.keep)
            await self._lock.confirm()
            await self._catalog.write(state)  # killed before the pointer moves, the live generation is still listed
            await self._catalog.point(published)
            if self._plan.replaces_all:
                state = replace(state, kept=(published,), fading=())
                await self._catalog.write(state)
            self._open = False
            self._published()
            await self._clean_up(state)
            return published.info

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._batch.stop()
            if self._open:
                self._open = False
                # don't send deletions to a server that refuses writes: with a full disk, it tries for minutes
                if not isinstance(error, StoreError):
                    await self._clean_up(self._plan.state)
        finally:
            await self._lock.release()

    # ---- steps -------------------------------------------------------------------------------

    async def _known(self, url: str) -> dict[str, tuple[str, Chunk]]:
        """The rows and chunks of this page in the base, by chunk id."""
        base = self._plan.base
        if base is None or url not in self._base or not self._base[url][1].derived.chunk_ids:
            return {}
        this = {"term": {"metadata.url": url}}
        sources = Rows(self._connection, base.info.id).all(base.chunks, this, leave_out=("tokens", "units"))
        return {source["chunk"]: (row_id, to_chunk(source)) async for row_id, source in sources}

    async def _chunks_of(self, urls: Sequence[str]) -> Mapping[str, Chunk]:
        if not urls:
            return {}
        index = self._plan.target.chunks
        await self._batch.flush()
        await self._batch.refresh(index)
        these = {"terms": {"metadata.url": urls}}
        sources = Rows(self._connection, self._plan.id).all(index, these, leave_out=("tokens", "units"))
        return {source["chunk"]: to_chunk(source) async for _, source in sources}

    async def _end(self, index: str, row_id: str) -> None:
        await self._batch.update(index, row_id, {"metadata": {"gen_to": self._plan.id}})

    async def _revert(self, url: str) -> None:
        """Undo the changes to this page, so that it can be put again."""
        target = self._plan.target
        await self._batch.flush()
        this = {"term": {"metadata.url": url}}
        for index in (target.chunks, target.pages):
            await self._batch.refresh(index)
            await delete_rows(self._connection, index, this, {"term": {"metadata.gen_from": self._plan.id}})
            await reopen_rows(self._connection, index, this, {"term": {"metadata.gen_to": self._plan.id}})
        self._put.discard(url)

    async def _write_touched(self) -> None:
        for url, page in self._touched.items():
            row_id = page_row_id(url, self._plan.id) if url in self._put else self._base.get(url, ("",))[0]
            if row_id and url not in self._removed:
                moved = {"metadata": {"translation_set": set_of(page)}} if url in self._moved else {}
                await self._batch.update(self._plan.target.pages, row_id, {"record": page_record(page), **moved})
        await self._batch.flush()

    async def _keep_live(self) -> GenerationInfo:
        if self._plan.live is None:
            raise NoIndex("Nothing was indexed: the run brought no page. Check the addresses that it was given.")
        if self._plan.base is not None and self._touched:
            await self._write_touched()
            await self._batch.refresh(self._plan.base.pages)
        info = replace(self._plan.live.info, sources=self._sources)
        if self._plan.base is not None and info != self._plan.live.info:
            state = self._plan.state
            generations = tuple(
                replace(published, info=info) if published.info.id == info.id else published for published in state.kept
            )
            await self._catalog.write(replace(state, kept=generations))
            self._published()
        self._open = False
        await self._clean_up(self._plan.state)
        return info

    async def _clean_up(self, state: State) -> None:
        """Delete the rows that no generation in the state uses. After a failure, the next draft deletes them."""
        if not self._wrote:
            return
        try:
            await self._lock.confirm()  # newer rows may belong to another writer by now
            if self._plan.replaces_all and state is self._plan.state:  # unknown which of the other indices are in use
                await self._catalog.delete(self._plan.target.chunks, self._plan.target.pages)
            else:
                await discard(self._connection, self._catalog, state)
        except StoreError as error:
            log.warning("Old rows stay until the next run: %s", error)
