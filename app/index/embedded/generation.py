"""A published generation of the embedded store, read at fixed versions of its tables."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np

from app.core.allocator import give_back_memory
from app.core.errors import IndexDamaged
from app.core.generation import GenerationInfo
from app.core.types import Candidate, Chunk, Legs, LexicalText, Page, PlainText, Query, Vector
from app.index.embedded.clusters import Clusters
from app.index.embedded.columns import CANDIDATE, ROW, Columns
from app.index.embedded.pointer import Published
from app.index.embedded.rows import (
    QUESTIONS,
    TRANSLATION_SET,
    condition,
    quoted,
    to_chunk,
    to_page,
    to_plain_text,
    unit,
)
from app.index.embedded.tables import ANY, Tables, lance_errors
from app.index.embedded.vectors import Vectors
from app.index.embedded.words import count_words, read_words
from app.index.ranking.language_offsets import centres, sample
from app.index.ranking.nearest import nearest
from app.index.ranking.summaries import PAGES, SummaryHit, best_of_each_page, pages_without_chunks, raised_to_summaries
from app.index.shared import Shared
from app.index.tokens import tokens_of_question
from app.index.translation_sets import TranslationSets
from app.index.vocabulary import Vocabulary

MAX_TERMS = 900  # limit of tokens in a question; more cost time without better results
READ_AT_ONCE = 4000  # vectors
ROWS_OF_PAGES = 2000  # chunks searched for the best one of each page that only its summary found


@dataclass(frozen=True, slots=True)
class EmbeddedGeneration:
    """See `app.index.protocols.Generation`. `with_plain_texts` is False for an index that has none."""

    info: GenerationInfo
    chunks: Any
    texts: Any
    records: Any
    summaries: Any = None
    words: Any = None
    clusters: Clusters = ANY
    with_plain_texts: bool = True
    _columns: Shared[Columns] = field(default_factory=Shared)
    _vectors: Shared[Vectors] = field(default_factory=Shared)
    _vocabulary: Shared[Vocabulary] = field(default_factory=Shared)
    _translation_sets: Shared[TranslationSets] = field(default_factory=Shared)
    _language_centres: Shared[Mapping[str, Vector]] = field(default_factory=Shared)

    @classmethod
    async def open(cls, tables: Tables, entry: Published) -> EmbeddedGeneration:
        """Open the generation of this entry."""
        named = (entry.chunks, entry.texts, entry.pages, entry.summaries, entry.words)
        opened: list[Any] = [table and await tables.open_version(table) for table in named]
        with lance_errors(f"read the columns of {entry.texts.name}"):
            plain = "plain" in (await opened[1].schema()).names
        return cls(entry.info, *(*opened, tables.clusters, plain))

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg, each best first, with raw scores."""
        where = condition(query.filters)
        lexical, vector = await asyncio.gather(self._lexical(query, where), self._vector(query, where))
        return Legs(lexical, vector)

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids; unknown ids are left out."""
        if not ids:
            return ()
        at = (await self._candidate_columns()).rows_of(ids)
        rows = await _fetched(self.chunks.take_row_ids(list(at.values())).select(["id", "record"])) if at else []
        found = {row["id"]: row["record"] for row in rows}
        with lance_errors("read the chunks that were found", IndexDamaged):
            return tuple(to_chunk(found[id_]) for id_ in ids if id_ in found)

    async def _candidate_columns(self) -> Columns:
        return await self._columns.get(self._read_columns)

    async def _read_columns(self) -> Columns:
        with lance_errors("read the columns of its chunks", IndexDamaged):
            content = await self.chunks.query().select(list(CANDIDATE)).with_row_id().to_arrow()
            columns = await asyncio.to_thread(Columns, content)
        del content
        await asyncio.to_thread(give_back_memory)
        return columns

    async def translation_sets(self) -> TranslationSets:
        """The pages that are translations of each other. The first call reads them all."""
        return await self._translation_sets.get(self._read_translation_sets)

    async def _read_translation_sets(self) -> TranslationSets:
        with lance_errors("read the columns of its pages", IndexDamaged):
            known = TRANSLATION_SET in (await self.records.schema()).names
        rows = (
            await self._rows(self.records, f"{TRANSLATION_SET} != ''", ["url", "language", TRANSLATION_SET])
            if known
            else []
        )
        return TranslationSets.read(
            (row["url"], row["language"], row[TRANSLATION_SET]) for row in sorted(rows, key=itemgetter("url"))
        )

    async def language_centres(self) -> Mapping[str, Vector]:
        """The mean vector of the chunks in each language. The first call reads the ids of all chunks: .1 s for 10,000."""
        return await self._language_centres.get(self._read_language_centres)

    async def _read_language_centres(self) -> Mapping[str, Vector]:
        languages = await self.column("language")
        vectors = await self.column("vector", sample(languages)) if languages else {}
        return centres((languages[id_], vector) for id_, vector in vectors.items())

    async def chunks_of(self, urls: Collection[str]) -> Mapping[str, tuple[Chunk, ...]]:
        """The chunks of each of these pages, in order; pages without chunks are left out."""
        within = f"url IN ({quoted(sorted(urls))})"
        rows, records = await asyncio.gather(
            self._rows(self.chunks, within, ["record"]), self._rows(self.records, within, ["record"])
        )
        with lance_errors("read the chunks of its pages", IndexDamaged):
            chunks = {chunk.id: chunk for chunk in (to_chunk(row["record"]) for row in rows)}
            pages = [to_page(row["record"]) for row in records]
        return {
            page.url: tuple(chunks[id_] for id_ in page.chunk_ids if id_ in chunks) for page in pages if page.chunk_ids
        }

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens."""
        words = await self.vocabulary()
        return {token: words.count(token) for token in tokens}

    async def vocabulary(self) -> Vocabulary:
        """The words of the chunks. The first call reads them; in an index of an earlier release, it reads all chunks."""
        return await self._vocabulary.get(self._read_vocabulary)

    async def _read_vocabulary(self) -> Vocabulary:
        return await (read_words(self.words) if self.words else count_words(self.chunks))

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown, by its public address."""
        this = f"url = {quoted([url])}"
        records = await self._rows(self.records, this, ["record"])
        if not records:
            return None
        with lance_errors(f"read the record of {url}", IndexDamaged):
            page = to_page(records[0]["record"])
        rows = await self._rows(self.texts, this, ["markdown"])
        return replace(page, markdown=rows[0]["markdown"] if rows else "")

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""
        rows = await self._rows(self.records, "", ["url", "record"])
        with lance_errors("read the records of its pages", IndexDamaged):
            return await asyncio.to_thread(_pages, rows)  # 20 ms of the event loop for each thousand

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of the pages with these addresses."""
        if not urls or not self.with_plain_texts:
            return {}
        rows = await self._rows(self.texts, f"url IN ({quoted(urls)})", ["url", "plain"])
        with lance_errors("read the texts of the pages that were found", IndexDamaged):
            return {row["url"]: to_plain_text(row["plain"]) for row in rows}

    async def column(self, name: str, ids: Sequence[str] = ()) -> dict[str, Any]:
        """One column of the chunks by id; of all chunks if no ids are given."""
        rows = await self._rows(self.chunks, f"id IN ({quoted(ids)})" if ids else "", ["id", name])
        return {row["id"]: row[name] for row in rows}

    async def vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of the texts of these chunks; a zero vector stands for none."""
        found = await self.column("vector", ids) if ids else {}
        return {id_: vector for id_, vector in found.items() if any(vector)}

    async def summary_digests(self) -> dict[str, bytes]:
        """The digests of the summaries, by the address of the page."""
        rows = await self._rows(self.summaries, "", ["url", "digest"]) if self.summaries else []
        return {row["url"]: row["digest"] for row in rows}

    async def _rows(self, table: Any, where: str, columns: list[str]) -> list[dict[str, Any]]:
        scan = table.query().select(columns)
        return await _fetched(scan.where(where) if where else scan)

    async def _lexical(self, query: Query, where: str) -> tuple[Candidate, ...]:
        words = _words(query.texts)
        if words is None:
            return ()
        search = self.chunks.query().nearest_to_text(words).select(["_score"]).with_row_id().limit(query.depth)
        found = await _found(search.where(where) if where else search)
        return (await self._candidate_columns()).candidates(found.column(ROW), found.column("_score").to_pylist())

    async def _vector(self, query: Query, where: str) -> tuple[Candidate, ...]:
        if query.vector is None:
            return ()
        vector = unit(query.vector, self.info.recipe.dimension, "the question")
        if not any(vector):
            return ()
        leg = await (self._in_memory if self._fits_memory(query) else self._in_files)(query, vector, where)
        if self.info.recipe.questions:
            leg = nearest(leg, await self._cosines(_near(self.chunks, vector, where, QUESTIONS).limit(query.depth)))
        if self.summaries is None:
            return leg
        rows = await _fetched(_near(self.summaries, vector, where).select(["url", "_distance"]).limit(PAGES))
        pages = [SummaryHit(row["url"], 1.0 - float(row["_distance"])) for row in rows]
        if urls := pages_without_chunks(leg, pages, query.depth):
            within = " AND ".join(filter(None, (where, f"url IN ({quoted(urls)})")))
            search = _near(self.chunks, vector, within).limit(ROWS_OF_PAGES).bypass_vector_index()
            leg = (*leg, *best_of_each_page(await self._cosines(search)))
        return raised_to_summaries(leg, pages, query.depth)

    def _fits_memory(self, query: Query) -> bool:
        """Whether the vectors in memory answer the query: not if it must be exact, or a number of clusters was chosen."""
        fits = Vectors.fit(self.info.chunks, self.info.recipe.dimension)
        return fits and not query.exact and not self.clusters.wanted

    async def _in_memory(self, query: Query, vector: Sequence[float], where: str) -> tuple[Candidate, ...]:
        within = None
        if where:
            within = (await _found(self.chunks.query().where(where).select([]).with_row_id())).column(ROW).to_numpy()
        vectors = await self._vectors.get(self._read_vectors)
        asked = np.asarray(vector, np.float32)
        rows, cosines = await asyncio.to_thread(vectors.nearest, asked, query.depth, within)
        return (await self._candidate_columns()).candidates(rows, cosines.tolist())

    async def _read_vectors(self) -> Vectors:
        dimension = self.info.recipe.dimension
        with lance_errors("read the vectors of its chunks", IndexDamaged):
            vectors = Vectors(await self.chunks.count_rows(), dimension)
            scan = self.chunks.query().select(["vector"]).with_row_id()
            async for batch in await scan.to_batches(max_batch_length=READ_AT_ONCE):
                read = batch.column("vector").flatten().to_numpy().reshape(-1, dimension)
                await asyncio.to_thread(vectors.add, batch.column(ROW).to_numpy(), read)
        await asyncio.to_thread(give_back_memory)
        return vectors

    async def _in_files(self, query: Query, vector: Sequence[float], where: str) -> tuple[Candidate, ...]:
        search = _near(self.chunks, vector, where).limit(query.depth)
        search = search.bypass_vector_index() if query.exact else search.nprobes(self.clusters.probes(self.info.chunks))
        return await self._cosines(search)

    async def _cosines(self, search: Any) -> tuple[Candidate, ...]:
        found = await _found(search.with_row_id())
        cosines = (1.0 - distance for distance in found.column("_distance").to_pylist())
        return (await self._candidate_columns()).candidates(found.column(ROW), cosines)


def _pages(rows: Sequence[dict[str, Any]]) -> tuple[Page, ...]:
    return tuple(to_page(row["record"]) for row in sorted(rows, key=lambda row: str(row["url"])))


def _near(table: Any, vector: Sequence[float], where: str, by: str = "vector") -> Any:
    """A vector search. Vectors have length 1 or 0, so LanceDB's "dot" distance is 1 - cosine."""
    search = table.query().nearest_to(vector).column(by).distance_type("dot").select(["_distance"])
    return search.where(where) if where else search


def _words(texts: Sequence[LexicalText]) -> Any:
    """A query of LanceDB for these texts: each is analysed in its own language, and scores are added.

    One text isn't wrapped: a boolean query scores every chunk with any of the words, a match query skips those that can't
    be among the best (a fifth of the time at 10,000 chunks).
    """
    from lancedb.query import BooleanQuery, MatchQuery, Occur

    matches = []
    for text in texts:
        terms = " ".join(tokens_of_question(text.text, text.language)[:MAX_TERMS])
        if terms and text.weight > 0:
            matches.append(MatchQuery(terms, "tokens", boost=text.weight))
    if len(matches) == 1:
        return matches[0]
    return BooleanQuery([(Occur.SHOULD, match) for match in matches]) if matches else None


async def _fetched(search: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await _found(search)).to_pylist()
    return rows


async def _found(search: Any) -> Any:
    with lance_errors("search the index", IndexDamaged):  # a fixed version never changes, so only damage makes it fail
        return await search.to_arrow()
