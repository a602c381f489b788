"""The next generation of the embedded store; writes only the differences from the live one, in batches."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from io import BufferedWriter
from types import TracebackType
from typing import Any, Self

from app.core.errors import StoreError
from app.core.generation import GenerationInfo, Recipe, SourceRecord
from app.core.types import Chunk, Page, Vector
from app.index.drafts import DraftPages, check_vectors
from app.index.embedded import pointer as embedded_pointer
from app.index.embedded.generation import EmbeddedGeneration
from app.index.embedded.pointer import Pointer, Published, TableVersion
from app.index.embedded.tables import (
    UNITS,
    Tables,
    chunk_row,
    digest,
    index_chunks,
    lance_errors,
    merge,
    page_row,
    quoted,
    schemas,
    summary_row,
    text_row,
    to_chunk,
    unit,
    write_words,
)
from app.index.ranking.units import packed

log = logging.getLogger(__name__)

KEYS_AT_ONCE = 1000
KEYS = {"chunks": "id", "texts": "url", "summaries": "url"}


class DraftTable:
    """A table that starts from a published version, or empty.

    `rows` are the digests of the rows on disk, by key; `pending` makes those to write, in a thread.
    """

    def __init__(
        self, tables: Tables, kind: str, schema: Any, base: Published | None, named: Iterable[TableVersion]
    ) -> None:
        self._tables = tables
        self._kind, self._key = kind, KEYS[kind]
        self._schema = schema
        self._pinned = base.tables.get(kind) if base else None
        # the oldest version of this table that a generation uses; 1 for a new table
        self._oldest = min((n.version for n in named if self._pinned and n.name == self._pinned.name), default=1)
        self._name = ""
        self._table: Any = None
        self.rows: dict[str, bytes] = {}
        self.pending: dict[str, Callable[[], dict[str, Any]]] = {}
        self._digests: dict[str, bytes] = {}
        self._gone: set[str] = set()

    @property
    def waiting(self) -> int:
        """The number of rows that the next flush writes or deletes."""
        return len(self.pending) + len(self._gone)

    def set(self, key: str, row: Callable[[], dict[str, Any]], digest: bytes = b"") -> None:
        """Insert or replace the row; one with the digest of the row that is there isn't written again."""
        self._gone.discard(key)
        self.pending.pop(key, None)
        if not digest or self.rows.get(key) != digest:
            self.pending[key] = row
            self._digests[key] = digest

    def drop(self, key: str) -> None:
        """Delete the row, if it exists."""
        self.pending.pop(key, None)
        if key in self.rows:
            self._gone.add(key)

    async def flush(self) -> None:
        """Delete removed and replaced rows, and write those that are pending."""
        stale = [key for key in (*self._gone, *self.pending) if key in self.rows]
        if not stale and not self.pending:
            return
        table, data = await self._opened(), await asyncio.to_thread(self._data)
        with lance_errors(f"write {len(self.pending)} rows to {self._tables.directory}"):
            for at in range(0, len(stale), KEYS_AT_ONCE):
                await table.delete(f"{self._key} IN ({quoted(stale[at : at + KEYS_AT_ONCE])})")
            if self.pending:
                await table.add(data)
        for key in stale:
            del self.rows[key]
        self.rows |= {key: self._digests.pop(key) for key in self.pending}
        self.pending.clear()
        self._gone.clear()

    def _data(self) -> Any:
        import pyarrow as pa

        return pa.Table.from_pylist([row() for row in self.pending.values()], schema=self._schema)

    async def read(self, where: str, columns: list[str]) -> list[dict[str, Any]]:
        """The rows as the last flush left them."""
        table = self._table
        if table is None:
            if self._pinned is None:
                return []
            table = await self._tables.open_version(self._pinned)
        with lance_errors(f"read what was written to {self._tables.directory}"):
            rows: list[dict[str, Any]] = (await table.query().where(where).select(columns).to_arrow()).to_pylist()
        return rows

    async def finish(self, index: Callable[[Any], Awaitable[None]] | None = None) -> TableVersion:
        """The version to publish; the original version if neither rows nor an index were written."""
        written = self._table is not None
        if not written and self._pinned is not None and index is None:
            return self._pinned
        table = await self._opened()
        if written:
            await merge(table, self._oldest)
        if index is not None:
            await index(table)
        with lance_errors(f"read the version of {self._name}"):
            return TableVersion(self._name, await table.version())

    async def _opened(self) -> Any:
        if self._table is None and self._pinned is not None:
            self._name, self._table = self._pinned.name, await self._tables.open_for_writing(self._pinned)
        elif self._table is None:
            self._name, self._table = await self._tables.create(self._kind, self._schema)
        return self._table


BATCH = 1000  # rows per write, because every write adds a file and a version


class EmbeddedDraft(DraftPages):
    """See `app.index.protocols.Draft`. Holds the write lock until its context is left. `base` is the live generation, if it can
    be shared.
    """

    def __init__(  # noqa: PLR0913 - parts of the store, most of them by name
        self,
        tables: Tables,
        recipe: Recipe,
        pointer: Pointer,
        base: EmbeddedGeneration | None,
        *,
        lock: BufferedWriter,
        keep: int,
        grace: float,
    ) -> None:
        live = pointer.live if pointer.generations else None
        super().__init__(recipe, live.info if live else None, rebuilds=base is None)
        self._tables, self._pointer, self._base = tables, pointer, base
        self._lock, self._keep, self._grace = lock, keep, grace
        self._began = time.time()
        self._known: dict[str, dict[str, Any]] = {}
        self._changed = self._touched = False
        shared, named = (live, pointer.tables) if base else (None, frozenset[TableVersion]())
        self._schemas = schemas(recipe.dimension, questions=bool(recipe.questions))
        self._chunks, self._texts, self._summaries = (
            DraftTable(tables, kind, self._schemas[kind], shared, named) for kind in KEYS
        )

    async def load(self) -> Self:
        """Read the pages and digests that the draft starts from."""
        base = self._base
        if base is not None:
            self._pages = {page.url: page for page in await base.pages()}
            self._chunks.rows = await base.column("digest")
            self._base_chunks = frozenset(self._chunks.rows)
            self._texts.rows = dict.fromkeys(self._pages, b"")
            self._summaries.rows = await base.summary_digests()
        return self

    async def put(self, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> None:
        """Add the page, or replace its chunks with these; `vectors` are by chunk id, for the `missing` chunks."""
        self._check_open()
        check_vectors(self._recipe, page, chunks, vectors, self._base_chunks)
        rows = {chunk.id: self._row(chunk, vectors) for chunk in chunks}
        summary = self._summary(page, vectors)
        async with self._writing, self._in_place():
            for id_ in self._chunk_ids(page.url) - rows.keys():
                self._chunks.drop(id_)
            for chunk in chunks:
                self._chunks.set(chunk.id, rows[chunk.id], digest(chunk))
            self._texts.set(page.url, partial(text_row, page))
            if summary is None:
                self._summaries.drop(page.url)
            else:
                self._summaries.set(page.url, lambda: summary, summary["digest"])
            self._pages[page.url] = page.without_texts(tuple(rows))
            self._changed = True
            if self._chunks.waiting >= BATCH:
                await self._flush()

    async def remove(self, url: str) -> None:
        """Remove the page and its chunks; an unknown address is no error."""
        self._check_open()
        async with self._writing:
            for id_ in self._chunk_ids(url):
                self._chunks.drop(id_)
            self._texts.drop(url)
            self._summaries.drop(url)
            self._changed |= self._pages.pop(url, None) is not None

    def _note_touched(self, page: Page, *, changed: bool, moved: bool) -> None:  # noqa: ARG002
        self._touched |= changed
        self._changed |= moved

    async def publish(self, sources: Sequence[SourceRecord] = ()) -> GenerationInfo:
        """Make the draft live in one atomic step, and drop generations that are no longer kept."""
        self._check_open()
        self._sources = tuple(sources) or self._sources
        async with self._writing, self._in_place():
            await self._compare()
            base = self._base  # where its words are damaged, the next generation has its own
            changed = self._changed or (base is not None and await base.lost())
            pointer = await (self._next_generation() if changed else self._same_generation())
            if pointer != self._pointer:
                await self._tables.protect(pointer.live.tables.values())
                await self._tables.sync_to_disk(self._began)
                embedded_pointer.confirm(self._tables.directory, self._lock)
                embedded_pointer.write(self._tables.directory, pointer)
                await self._clean_up(pointer)
            self._close()
        return pointer.live.info

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    async def _clean_up(self, pointer: Pointer) -> None:
        """Clean up while the lock is still held. A failure doesn't affect the published generation."""
        try:
            await self._tables.clean_up(pointer.without_retired(time.time() - self._grace).tables)
        except StoreError as error:
            log.warning("index published, but not cleaned up: %s", error)

    @asynccontextmanager
    async def _in_place(self) -> AsyncIterator[None]:
        """Context that reports a directory that was moved or deleted, because LanceDB's error doesn't."""
        try:
            yield
        except StoreError:
            embedded_pointer.confirm(self._tables.directory, self._lock)
            raise

    def _close(self) -> None:
        self._open = False
        self._lock.close()

    def _chunk_ids(self, url: str) -> set[str]:
        return set(self._pages[url].derived.chunk_ids) if url in self._pages else set()

    def _row(self, chunk: Chunk, vectors: Mapping[str, Vector]) -> Callable[[], dict[str, Any]]:
        """Makes the row of a chunk. The vectors of a known chunk are there only after `_flush` has read them."""
        dimension = self._recipe.dimension
        questions = [0.0] * dimension
        if self._recipe.questions and chunk.questions:
            questions = unit(vectors[chunk.questions_id], dimension, f"the questions of chunk {chunk.id}")
        if chunk.id in self._base_chunks:
            return lambda: chunk_row(chunk, self._known[chunk.id]["vector"], questions, self._known[chunk.id][UNITS])
        vector = unit(vectors[chunk.id], dimension, f"chunk {chunk.id} of {chunk.url}")
        return lambda: chunk_row(chunk, vector, questions, packed(chunk, vectors))

    def _summary(self, page: Page, vectors: Mapping[str, Vector]) -> dict[str, Any] | None:
        if not (self._recipe.summaries and page.summary_text):
            return None
        return summary_row(page, unit(vectors[page.url], self._recipe.dimension, f"the summary of {page.url}"))

    async def _flush(self) -> None:
        known = [id_ for id_ in self._chunks.pending if id_ in self._base_chunks]
        if self._base and known:
            self._known |= await self._base.columns(("vector", UNITS), known)
        for table in (self._chunks, self._texts, self._summaries):
            await table.flush()
        self._known.clear()

    async def _chunks_of(self, urls: Sequence[str]) -> Mapping[str, Chunk]:
        if not urls:
            return {}
        await self._flush()
        rows = await self._chunks.read(f"url IN ({quoted(urls)})", ["record"])
        return {chunk.id: chunk for chunk in (to_chunk(row["record"]) for row in rows)}

    async def _same_generation(self) -> Pointer:
        """The pointer with the live generation unchanged except for touched records and its sources."""
        live = self._pointer.live
        if not self._touched and self._sources == live.info.sources:
            return self._pointer
        tables = live.tables | ({"pages": await self._write_pages()} if self._touched else {})
        live = Published(replace(live.info, sources=self._sources), tables)
        return self._pointer.with_live(live, time.time())

    async def _next_generation(self) -> Pointer:
        await self._flush()
        chunks, texts = await self._chunks.finish(index_chunks), await self._texts.finish()
        info = self._described(self._pointer.last_id + 1)
        tables = {"chunks": chunks, "texts": texts, "pages": await self._write_pages()}
        tables |= {"summaries": await self._summaries.finish()} if self._recipe.summaries else {}
        entry = Published(info, tables | {"words": await write_words(self._tables, chunks)})
        return self._pointer.with_generation(entry, self._keep, time.time())

    async def _write_pages(self) -> TableVersion:
        """Write all page records to a new table; they are small and change with every fetch."""
        rows = [page_row(page) for _, page in sorted(self._pages.items())]
        return await self._tables.write("pages", rows, self._schemas["pages"])
