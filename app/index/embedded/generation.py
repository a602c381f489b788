"""A published generation of the embedded store, read at fixed versions of its tables; the columns and vectors for ranking are in memory."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from app.core.errors import IndexDamaged
from app.core.gate import Shared
from app.core.generation import GenerationInfo
from app.core.process import give_back_memory
from app.core.types import Candidate, Chunk, Derived, Indirect, Legs, LexicalText, Page, PlainText, Query, Vector
from app.index.embedded.pointer import Published, TableVersion
from app.index.embedded.tables import (
    QUESTIONS,
    TRANSLATION_SET,
    UNITS,
    Tables,
    condition,
    count_words,
    lance_errors,
    quoted,
    read_words,
    to_chunk,
    to_page,
    unit,
)
from app.index.protocols import Counterparts, Pair, TranslationSets
from app.index.ranking.counterparts import counterparts_of
from app.index.ranking.legs import (
    PAGES,
    best_first,
    centres,
    of_summaries,
    pages_without_chunks,
    sample,
)
from app.index.vocabulary import Vocabulary, searched_terms

log = logging.getLogger(__name__)

CANDIDATE = ("id", "url", "language", "modified", "versions", "collection")
ROW = "_rowid"


class _Repeated:
    """A column whose values are kept once: they are few."""

    def __init__(self, column: Any) -> None:
        numbers: dict[Any, int] = {}
        if hasattr(column.type, "value_type"):  # lists, which Arrow doesn't encode
            encoded_values = [numbers.setdefault(tuple(value), len(numbers)) for value in column.to_pylist()]
            self._values: list[Any] = list(numbers)
        else:
            encoded = column.combine_chunks().dictionary_encode()
            encoded_values, self._values = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        self._numbers = np.array(encoded_values, np.uint32)

    def at(self, places: Any) -> list[Any]:
        """The values at these places."""
        return [self._values[number] for number in self._numbers[places].tolist()]


class Columns:
    """The columns of a candidate by LanceDB's row id, of one version of the table: about 100 bytes for each chunk.

    `content` is an Arrow table of `CANDIDATE` and the row ids. Sorting takes .1 s for 100,000 rows, so call it in a thread.
    """

    def __init__(self, content: Any) -> None:
        import pyarrow.compute as pc

        rows = content.column(ROW).to_numpy()
        order = np.argsort(rows, kind="stable")
        content = content.select(list(CANDIDATE)).take(order)
        self._rows = rows[order]
        self._ids = content.column("id").combine_chunks()
        self._repeated = [_Repeated(content.column(name)) for name in CANDIDATE[1:]]
        self._by_id = pc.sort_indices(self._ids).to_numpy().astype(np.uint32)

    def candidates(self, rows: Any, scores: Iterable[float]) -> tuple[Candidate, ...]:
        """The chunks in these rows with these scores, best first."""
        places = np.searchsorted(self._rows, rows)
        urls, languages, *others = (column.at(places) for column in self._repeated)
        ids = self._ids.take(places).to_pylist()
        return tuple(best_first(starmap(Candidate, zip(ids, urls, languages, scores, *others, strict=True))))

    def rows_of(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The row ids of the chunks with these ids; without unknown ones."""
        row_of: dict[str, int] = {}
        for id_ in ids:
            first = bisect_left(
                self._by_id, id_.encode(), key=lambda place: self._ids[int(place)].as_buffer().to_pybytes()
            )
            if first < len(self._by_id) and self._ids[place := int(self._by_id[first])].as_py() == id_:
                row_of[id_] = int(self._rows[place])
        return row_of


EXACT_BYTES = 32_000_000  # up to here, vectors are kept as they are: 31,000 of 256 numbers
STEPS = 127
RESCORED = 2  # times the wanted vectors, so that rounding the question changes little


class Vectors:
    """The vectors by LanceDB's row id, of one version of the table.

    Few are kept as 32-bit numbers. Many are rounded to one byte for each number, which changes a cosine by about .0006.
    """

    def __init__(self, count: int, dimension: int) -> None:
        exact = count * dimension * 4 <= EXACT_BYTES
        self._rows = np.empty(count, np.uint64)
        self._matrix: NDArray[Any] = np.empty((count, dimension), np.float32 if exact else np.int8)
        self._steps = np.ones(count, np.float32)
        self._exact, self._filled = exact, 0

    def add(self, rows: NDArray[Any], vectors: NDArray[np.float32]) -> None:
        """Add vectors of length 1 or 0 with their row ids."""
        place = slice(self._filled, self._filled + len(rows))
        self._filled += len(rows)
        self._rows[place] = rows
        if self._exact:
            self._matrix[place] = vectors
        else:
            self._matrix[place], self._steps[place] = _rounded(vectors)

    def nearest(
        self, vector: NDArray[np.float32], depth: int, within: NDArray[Any] | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The row ids of the nearest vectors and their cosines; `within` limits them to these row ids.

        Takes 3 ms for 100,000 vectors of 256 numbers, so call it in a thread.
        """
        places = None if within is None else np.flatnonzero(np.isin(self._rows, within))
        cosines = self._cosines(vector, places)
        wanted = depth if self._exact else depth * RESCORED
        best = _largest(cosines, wanted)
        nearest_places, cosines = best if places is None else places[best], cosines[best]
        if not self._exact:
            cosines = (self._matrix[nearest_places].astype(np.float32) @ vector) * self._steps[nearest_places]
            best = _largest(cosines, depth)
            nearest_places, cosines = nearest_places[best], cosines[best]
        return self._rows[nearest_places], cosines

    def _cosines(self, vector: NDArray[np.float32], places: NDArray[Any] | None) -> NDArray[Any]:
        import simsimd

        matrix, steps = (self._matrix, self._steps) if places is None else (self._matrix[places], self._steps[places])
        if not len(matrix):
            return np.empty(0)
        asked, step = (vector[None], 1.0) if self._exact else _rounded(vector[None])
        # NumPy's product of a matrix and a vector runs on all cores, whose threads wait for each other: 21 ms instead of 1
        products = np.asarray(simsimd.cdist(asked, matrix, "dot", threads=1, out_dtype="float32"))[0]
        return np.asarray(products * (steps * step))


def _rounded(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """The vectors in whole steps, and the length of a step of each."""
    steps = np.abs(vectors).max(axis=1) / STEPS
    steps[steps == 0] = 1.0
    return np.rint(vectors / steps[:, None]).astype(np.int8), steps


def _largest(values: NDArray[Any], count: int) -> NDArray[Any]:
    """The places of the largest values, in any order."""
    return (
        np.argpartition(values, len(values) - count)[len(values) - count :]
        if count < len(values)
        else np.arange(len(values))
    )


READ_AT_ONCE = 4000  # vectors
ROWS_OF_PAGES = 2000  # chunks searched for the best one of each page that only its summary found


@dataclass(frozen=True, slots=True)
class EmbeddedGeneration:
    """See `app.index.protocols.Generation`. Its `words` are read by the first question, and counted again where they are damaged.

    `with_units` is False for an index that has none.
    """

    info: GenerationInfo
    tables: Tables
    words: TableVersion
    chunks: Any
    texts: Any
    records: Any
    summaries: Any = None
    with_units: bool = True
    _columns: Shared[Columns] = field(default_factory=Shared)
    _vectors: Shared[Vectors] = field(default_factory=Shared)
    _vocabulary: Shared[tuple[Vocabulary, str]] = field(default_factory=Shared)
    _translation_sets: Shared[TranslationSets] = field(default_factory=Shared)
    _language_centres: Shared[Mapping[str, Vector]] = field(default_factory=Shared)

    @classmethod
    async def open(cls, tables: Tables, entry: Published) -> EmbeddedGeneration:
        """Open the generation of this entry."""
        opened = {kind: await tables.open_version(pinned) for kind, pinned in entry.tables.items() if kind != "words"}
        with lance_errors(f"read the columns of {entry.tables['chunks'].name}"):
            units = UNITS in (await opened["chunks"].schema()).names
        chunks, texts, records = opened["chunks"], opened["texts"], opened["pages"]
        words = entry.tables["words"]
        return cls(entry.info, tables, words, chunks, texts, records, opened.get("summaries"), units)

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg, each best first, with raw scores."""
        where = condition(query.filters)
        lexical, (vector, indirect) = await asyncio.gather(self._lexical(query, where), self._vectors_of(query, where))
        return Legs(lexical, vector, indirect=indirect)

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids; unknown ids are left out."""
        records = await self._taken("record", ids)
        with lance_errors("read the chunks that were found", IndexDamaged):
            return tuple(to_chunk(records[id_]) for id_ in ids if id_ in records)

    async def units(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        """The units of these chunks."""
        return await self._taken(UNITS, ids) if self.with_units else {}

    async def _taken(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
        """One column of these chunks by id, read where their rows lie."""
        places = (await self._candidate_columns()).rows_of(ids) if ids else {}
        if not places:
            return {}
        rows = await _fetched(self.chunks.take_row_ids(list(places.values())).select(["id", name]))
        return {row["id"]: row[name] for row in rows}

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
        rows = await self._rows(self.records, f"{TRANSLATION_SET} != ''", ["url", "language", TRANSLATION_SET])
        return TranslationSets.read(
            (row["url"], row["language"], row[TRANSLATION_SET]) for row in sorted(rows, key=itemgetter("url"))
        )

    async def counterparts(self, pairs: Collection[Pair]) -> Mapping[Pair, Counterparts]:
        """The counterparts of each of these pairs."""
        within = f"url IN ({quoted(sorted({url for pair in pairs for url in pair}))})"
        rows = await self._rows(self.records, within, ["url", "record"])
        with lance_errors("read what its pages have in common", IndexDamaged):
            pages = {row["url"]: Derived.compared(orjson.loads(row["record"])) for row in rows}
        return await counterparts_of(pairs, pages, self.chunks_of)

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
            page.url: tuple(chunks[id_] for id_ in page.derived.chunk_ids if id_ in chunks)
            for page in pages
            if page.derived.chunk_ids
        }

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens."""
        words = await self.vocabulary()
        return {token: words.count(token) for token in tokens}

    async def vocabulary(self) -> Vocabulary:
        """The words of the chunks. The first call reads them; where they are damaged, it reads all chunks."""
        return (await self._vocabulary.get(self._read_vocabulary))[0]

    async def lost(self) -> str:
        """Returns the damage that is made up for, so that questions are answered nevertheless; empty without damage."""
        return (await self._vocabulary.get(self._read_vocabulary))[1]

    async def _read_vocabulary(self) -> tuple[Vocabulary, str]:
        try:
            words = await self.tables.open_version(self.words)
            return await read_words(words), ""
        except IndexDamaged as error:
            log.warning("the words of the chunks are counted again, because theirs can't be read: %s", error)
            return await count_words(self.chunks), str(error)

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

    async def first_chunks(self) -> tuple[Candidate, ...]:
        """The first chunk of each page."""
        pages = [page for page in await self.pages() if page.derived.chunk_ids]
        return tuple(
            Candidate(page.derived.chunk_ids[0], page.url, page.language, 0.0, "", page.versions, page.collection)
            for page in pages
        )

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of the pages with these addresses."""
        if not urls:
            return {}
        rows = await self._rows(self.texts, f"url IN ({quoted(urls)})", ["url", "plain"])
        with lance_errors("read the texts of the pages that were found", IndexDamaged):
            return {row["url"]: PlainText.of_json(orjson.loads(row["plain"])) for row in rows}

    async def column(self, name: str, ids: Sequence[str] = ()) -> dict[str, Any]:
        """One column of the chunks by id; of all chunks if no ids are given."""
        return {id_: row[name] for id_, row in (await self.columns((name,), ids)).items()}

    async def columns(self, names: Sequence[str], ids: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """These columns of the chunks by id; of all chunks if no ids are given."""
        rows = await self._rows(self.chunks, f"id IN ({quoted(ids)})" if ids else "", ["id", *names])
        return {row["id"]: row for row in rows}

    async def vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of the texts of these chunks; a zero vector stands for none."""
        vectors = await self.column("vector", ids) if ids else {}
        return {id_: vector for id_, vector in vectors.items() if any(vector)}

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
        hits = await _found(search.where(where) if where else search)
        return (await self._candidate_columns()).candidates(hits.column(ROW), hits.column("_score").to_pylist())

    async def _vectors_of(
        self, query: Query, where: str
    ) -> tuple[tuple[Candidate, ...], dict[Indirect, tuple[Candidate, ...]]]:
        """The vector leg, and those of questions and summaries, if the index has any."""
        vector = query.vector and unit(query.vector, self.info.recipe.dimension, "the question")
        if not vector or not any(vector):
            return (), {}
        if query.exact:
            leg = await self._cosines(_near(self.chunks, vector, where).limit(query.depth).bypass_vector_index())
        else:
            leg = await self._in_memory(query, vector, where)
        indirect: dict[Indirect, tuple[Candidate, ...]] = {}
        if self.info.recipe.questions:
            near = await self._cosines(_near(self.chunks, vector, where, QUESTIONS).limit(query.depth))
            indirect["questions"] = tuple(one for one in near if one.score)  # a vector of zeros is that of no question
        if self.summaries is not None:
            indirect["summaries"] = await self._summaries(vector, where, leg)
        return leg, indirect

    async def _summaries(self, vector: Sequence[float], where: str, leg: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The leg of the summaries, whose chunks are those of the vector leg, and for pages without one the nearest of the page."""
        rows = await _fetched(_near(self.summaries, vector, where).select(["url", "_distance"]).limit(PAGES))
        pages = {row["url"]: 1.0 - float(row["_distance"]) for row in rows}
        if urls := pages_without_chunks(leg, pages):
            within = " AND ".join(filter(None, (where, f"url IN ({quoted(urls)})")))
            search = _near(self.chunks, vector, within).limit(ROWS_OF_PAGES).bypass_vector_index()
            leg = (*leg, *await self._cosines(search))
        return of_summaries(pages, leg)

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

    async def _cosines(self, search: Any) -> tuple[Candidate, ...]:
        hits = await _found(search.with_row_id())
        cosines = (1.0 - distance for distance in hits.column("_distance").to_pylist())
        return (await self._candidate_columns()).candidates(hits.column(ROW), cosines)


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

    matches = [MatchQuery(words, "tokens", boost=weight) for words, weight in searched_terms(texts)]
    if len(matches) == 1:
        return matches[0]
    return BooleanQuery([(Occur.SHOULD, match) for match in matches]) if matches else None


async def _fetched(search: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await _found(search)).to_pylist()
    return rows


async def _found(search: Any) -> Any:
    with lance_errors("search the index", IndexDamaged):  # a fixed version never changes, so only damage makes it fail
        return await search.to_arrow()
