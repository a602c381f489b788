"""The next generation of the embedded store; writes only the differences from the live one, in batches."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from io import BufferedWriter
from itertools import islice
from types import TracebackType
from typing import Any, Self

from app.core.errors import StoreError
from app.core.generation import GenerationInfo, Recipe, SourceRecord
from app.core.types import Chunk, Page, PlainText, Vector
from app.index.embedded import pointer as embedded_pointer
from app.index.embedded.generation import EmbeddedGeneration
from app.index.embedded.pointer import Pointer, Published, TableVersion
from app.index.embedded.rows import (
    ChunkRow,
    SummaryRow,
    TextRow,
    chunk_schema,
    chunk_table,
    digest,
    page_table,
    quoted,
    summary_schema,
    summary_table,
    text_schema,
    text_table,
)
from app.index.embedded.rows import unit as unit_vector
from app.index.embedded.tables import Tables, index_chunks, lance_errors, merge, outgrown, write_words

log = logging.getLogger(__name__)

KEYS_AT_ONCE = 1000
KEYS = {"chunks": "id", "texts": "url", "summaries": "url"}


class DraftTable:
    """A table that starts from a published version, or empty.

    `rows` are the digests of the rows on disk, by key; `pending` are the rows to write.
    """

    def __init__(
        self, tables: Tables, kind: str, schema: Any, pinned: TableVersion | None, named: Iterable[TableVersion]
    ) -> None:
        self._tables = tables
        self._kind, self._key = kind, KEYS[kind]
        self._schema = schema
        self._pinned = pinned
        # the oldest version of this table that a generation uses; 1 for a new table
        self._oldest = min((n.version for n in named if pinned and n.name == pinned.name), default=1)
        self._name = ""
        self._table: Any = None
        self.rows: dict[str, bytes] = {}
        self.pending: dict[str, Any] = {}
        self._digests: dict[str, bytes] = {}
        self._gone: set[str] = set()

    @property
    def waiting(self) -> int:
        """The number of rows that the next flush writes or deletes."""
        return len(self.pending) + len(self._gone)

    def set(self, key: str, digest: bytes, content: Any) -> None:
        """Insert or replace the row; an unchanged row isn't written again."""
        self._gone.discard(key)
        self.pending.pop(key, None)
        if self.rows.get(key) != digest:
            self.pending[key] = content
            self._digests[key] = digest

    def drop(self, key: str) -> None:
        """Delete the row, if it exists."""
        self.pending.pop(key, None)
        if key in self.rows:
            self._gone.add(key)

    async def flush(self, data: Any) -> None:
        """Delete removed and replaced rows, and write `data`, the Arrow form of `pending`."""
        stale = [key for key in (*self._gone, *self.pending) if key in self.rows]
        if not stale and not self.pending:
            return
        table = await self._opened()
        with lance_errors(f"write {len(self.pending)} rows to {self._tables.directory}"):
            for keys in _batches(stale):
                await table.delete(f"{self._key} IN ({quoted(keys)})")
            if self.pending:
                await table.add(data)
        for key in stale:
            del self.rows[key]
        self.rows |= {key: self._digests.pop(key) for key in self.pending}
        self.pending.clear()
        self._gone.clear()

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


def _batches(keys: list[str]) -> list[list[str]]:
    rest = iter(keys)
    return list(iter(lambda: list(islice(rest, KEYS_AT_ONCE)), []))


BATCH = 1000  # rows per write, because every write adds a file and a version


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a draft: the pointer, the live generation if it can be shared, and the write lock."""

    pointer: Pointer
    base: EmbeddedGeneration | None
    lock: BufferedWriter
    keep: int
    grace: float


class EmbeddedDraft:
    """See `app.index.protocols.Draft`. Holds the write lock until its context is left."""

    def __init__(self, tables: Tables, recipe: Recipe, start: Start) -> None:
        self._tables = tables
        self._recipe = recipe
        self._start = start
        self._writing = asyncio.Lock()
        self._began = time.time()
        self._open = True
        self._base_pages: dict[str, Page] = {}
        self._pages: dict[str, Page] = {}
        self._base_chunks: frozenset[str] = frozenset()
        self._changed = self._touched = False
        self._sources = start.pointer.generations[0].info.sources if start.pointer.generations else ()
        live, named = (start.pointer.live, start.pointer.tables) if start.base else (None, frozenset[TableVersion]())
        self._chunk_schema = chunk_schema(recipe.dimension, questions=bool(recipe.questions))
        self._chunks = DraftTable(tables, "chunks", self._chunk_schema, live.chunks if live else None, named)
        self._texts = DraftTable(tables, "texts", text_schema(), live.texts if live else None, named)
        summaries = live.summaries if live else None
        self._summaries = DraftTable(tables, "summaries", summary_schema(recipe.dimension), summaries, named)

    async def load(self) -> Self:
        """Read the pages and digests that the draft starts from."""
        base = self._start.base
        if base is not None:
            self._base_pages = {page.url: page for page in await base.pages()}
            self._pages = dict(self._base_pages)
            self._chunks.rows = await base.column("digest")
            self._base_chunks = frozenset(self._chunks.rows)
            self._texts.rows = dict.fromkeys(self._pages, b"")
            self._summaries.rows = await base.summary_digests()
        return self

    @property
    def rebuilds(self) -> bool:
        """True if nothing can be shared with the live generation (another recipe, or none is live)."""
        return self._start.base is None

    async def page_states(self) -> Mapping[str, Page]:
        """The pages as the draft has them, by address, without Markdown."""
        return dict(self._pages)

    async def missing(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """The chunks that the draft doesn't have yet: `put` needs vectors for them."""
        return tuple(chunk for chunk in chunks if chunk.id not in self._base_chunks)

    async def put(self, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> None:
        """Add the page, or replace its chunks with these; `vectors` are by chunk id, for the `missing` chunks."""
        self._check_open()
        rows = [ChunkRow(chunk, self._vector(chunk, vectors), self._questions(chunk, vectors)) for chunk in chunks]
        summary = self._summary(page, vectors)
        ids = tuple(dict.fromkeys(chunk.id for chunk in chunks))
        async with self._writing, self._in_place():
            for id_ in self._chunk_ids(page.url) - set(ids):
                self._chunks.drop(id_)
            for row in rows:
                self._chunks.set(row.chunk.id, digest(row.chunk), row)
            texts = TextRow.of(page)
            self._texts.set(page.url, texts.digest, texts)
            if summary is None:
                self._summaries.drop(page.url)
            else:
                self._summaries.set(page.url, summary.digest, summary)
            self._pages[page.url] = replace(page, markdown="", plain=PlainText(), chunk_ids=ids)
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

    async def touch(self, pages: Iterable[Page]) -> None:
        """Replace the records of these pages without writing chunks; unknown pages are ignored."""
        self._check_open()
        for page in pages:
            known = self._pages.get(page.url)
            if known is not None:
                self._pages[page.url] = replace(page, markdown="", plain=PlainText(), chunk_ids=known.chunk_ids)
                self._touched |= self._pages[page.url] != known
                self._changed |= page.translation_set != known.translation_set

    async def publish(self, sources: Sequence[SourceRecord] = (), *, supersede: bool = False) -> GenerationInfo:
        """Make the draft live in one atomic step, and drop generations that are no longer kept."""
        self._check_open()
        self._sources = tuple(sources) or self._sources
        async with self._writing, self._in_place():
            changed = self._changed or await self._outgrown() or await self._lacks_words()
            pointer = await (self._next_generation(supersede=supersede) if changed else self._same_generation())
            if pointer != self._start.pointer:
                await self._tables.protect(pointer.live.tables)
                await self._tables.sync_to_disk(self._began)
                embedded_pointer.confirm(self._tables.directory, self._start.lock)
                embedded_pointer.write(self._tables.directory, pointer)
                await self._clean_up(pointer)
            self._close()
        return pointer.live.info

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    async def _clean_up(self, pointer: Pointer) -> None:
        """Clean up while the lock is still held. A failure doesn't affect the published generation."""
        try:
            await self._tables.clean_up(pointer.without_retired(time.time() - self._start.grace).tables)
        except StoreError as error:
            log.warning("index published, but not cleaned up: %s", error)

    @asynccontextmanager
    async def _in_place(self) -> AsyncIterator[None]:
        """Context that reports a directory that was moved or deleted, because LanceDB's error doesn't."""
        try:
            yield
        except StoreError:
            embedded_pointer.confirm(self._tables.directory, self._start.lock)
            raise

    def _close(self) -> None:
        self._open = False
        self._start.lock.close()

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError("This draft was published or left already: begin another one with `store.draft`.")

    def _chunk_ids(self, url: str) -> set[str]:
        return set(self._pages[url].chunk_ids) if url in self._pages else set()

    def _vector(self, chunk: Chunk, vectors: Mapping[str, Vector]) -> Sequence[float]:
        """The vector of a new chunk. Empty for a known chunk, whose vector is read when the row is written."""
        if chunk.id in self._base_chunks:
            return ()
        if chunk.id not in vectors:
            raise StoreError(f"Chunk {chunk.id} of {chunk.url} is new and has no vector: embed what `missing` names.")
        return unit_vector(vectors[chunk.id], self._recipe.dimension, f"chunk {chunk.id} of {chunk.url}")

    def _questions(self, chunk: Chunk, vectors: Mapping[str, Vector]) -> Sequence[float]:
        if not (self._recipe.questions and chunk.questions):
            return (0.0,) * self._recipe.dimension
        if chunk.questions_id not in vectors:
            raise StoreError(f"The questions of chunk {chunk.id} have no vector: embed the chunk's questions_text too.")
        return unit_vector(vectors[chunk.questions_id], self._recipe.dimension, f"the questions of chunk {chunk.id}")

    def _summary(self, page: Page, vectors: Mapping[str, Vector]) -> SummaryRow | None:
        if not (self._recipe.summaries and page.summary_text):
            return None
        if page.url not in vectors:
            raise StoreError(f"The summary of {page.url} has no vector: embed the page's summary_text too.")
        return SummaryRow(page, unit_vector(vectors[page.url], self._recipe.dimension, f"the summary of {page.url}"))

    async def _flush(self) -> None:
        rows: list[ChunkRow] = list(self._chunks.pending.values())
        without = [row.chunk.id for row in rows if not row.vector]
        base = self._start.base
        vectors = await base.column("vector", without) if base and without else {}
        rows = [row if row.vector else replace(row, vector=vectors[row.chunk.id]) for row in rows]
        await self._chunks.flush(await asyncio.to_thread(chunk_table, rows, self._chunk_schema))
        await self._texts.flush(text_table(list(self._texts.pending.values())))
        summaries = list(self._summaries.pending.values())
        await self._summaries.flush(summary_table(summaries, self._recipe.dimension))

    async def _outgrown(self) -> bool:
        """True if chunks of the live generation must be clustered, although nothing changed."""
        base = self._start.base
        return base is not None and await outgrown(base.chunks, self._tables.clusters) > 0

    async def _lacks_words(self) -> bool:
        """True if the words of the live generation are damaged: the next one has its own."""
        base = self._start.base
        return base is not None and bool(await base.lost())

    async def _same_generation(self) -> Pointer:
        """The pointer with the live generation unchanged except for touched records and its sources."""
        live = self._start.pointer.live
        if not self._touched and self._sources == live.info.sources:
            return self._start.pointer
        pages = await self._write_pages() if self._touched else live.pages
        live = replace(live, info=replace(live.info, sources=self._sources), pages=pages)
        return self._start.pointer.with_live(live, time.time())

    async def _next_generation(self, *, supersede: bool) -> Pointer:
        await self._flush()
        chunks, texts = (
            await self._chunks.finish(partial(index_chunks, clusters=self._tables.clusters)),
            await self._texts.finish(),
        )
        info = GenerationInfo(
            id=self._start.pointer.last_id + 1,
            recipe=self._recipe,
            built_at=datetime.now(UTC).isoformat(timespec="seconds"),
            languages=tuple(sorted({page.language for page in self._pages.values()})),
            pages=len(self._pages),
            chunks=sum(len(page.chunk_ids) for page in self._pages.values()),
            sources=self._sources,
        )
        summaries = await self._summaries.finish() if self._recipe.summaries else None
        words = await write_words(self._tables, chunks)
        entry = Published(info, chunks, texts, await self._write_pages(), summaries, words)
        return self._start.pointer.with_generation(entry, self._start.keep, time.time(), supersede=supersede)

    async def _write_pages(self) -> TableVersion:
        """Write all page records to a new table; they are small and change with every fetch."""
        name, table = await self._tables.create("pages", page_table(list(self._pages.values())))
        with lance_errors("write the page records"):
            return TableVersion(name, await table.version())
