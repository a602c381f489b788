"""A published generation of the embedded store, read at fixed versions of its tables."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from app.core.errors import IndexDamaged
from app.core.generation import GenerationInfo
from app.core.types import Candidate, Chunk, Legs, LexicalText, Page, PlainText, Query, Vector
from app.index.embedded.clusters import Clusters
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
from app.index.ranking.language_offsets import centres, sample
from app.index.ranking.nearest import nearest
from app.index.ranking.summaries import PAGES, SummaryHit, best_of_each_page, pages_without_chunks, raised_to_summaries
from app.index.shared import Shared
from app.index.translation_sets import TranslationSets
from app.text.analysis import analyse

MAX_TERMS = 900  # limit of tokens in a question; more cost time without better results
ROWS_OF_PAGES = 2000  # chunks searched for the best one of each page that only its summary found
CANDIDATE = ["id", "url", "language", "modified", "versions", "collection"]


@dataclass(frozen=True, slots=True)
class EmbeddedGeneration:
    """See `app.index.protocols.Generation`. `with_plain_texts` is False for an index that has none."""

    info: GenerationInfo
    chunks: Any
    texts: Any
    records: Any
    summaries: Any = None
    clusters: Clusters = ANY
    with_plain_texts: bool = True
    _counts: Shared[Counter[str]] = field(default_factory=Shared)
    _translation_sets: Shared[TranslationSets] = field(default_factory=Shared)
    _language_centres: Shared[Mapping[str, Vector]] = field(default_factory=Shared)

    @classmethod
    async def open(cls, tables: Tables, entry: Published) -> EmbeddedGeneration:
        """Open the generation of this entry."""
        opened = [await tables.open_version(table) for table in entry.tables]
        with lance_errors(f"read the columns of {entry.texts.name}"):
            with_plain_texts = "plain" in (await opened[1].schema()).names
        return replace(cls(entry.info, *opened), clusters=tables.clusters, with_plain_texts=with_plain_texts)

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg, each best first, with raw scores."""
        where = condition(query.filters)
        lexical, vector = await asyncio.gather(self._lexical(query, where), self._vector(query, where))
        return Legs(lexical, vector)

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids; unknown ids are left out."""
        if not ids:
            return ()
        rows = await self._rows(self.chunks, f"id IN ({quoted(ids)})", ["id", "record"])
        found = {row["id"]: row["record"] for row in rows}
        with lance_errors("read the chunks that were found", IndexDamaged):
            return tuple(to_chunk(found[id_]) for id_ in ids if id_ in found)

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
        """The number of chunks with each of these tokens. The first call reads all chunks: 1 s for 10,000."""
        counts = await self._counts.get(self._counted)
        return {token: counts[token] for token in tokens}

    async def _counted(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        with lance_errors("count the words of the index"):
            async for batch in await self.chunks.query().select(["tokens"]).to_batches():
                counts.update(await asyncio.to_thread(_count, batch.column("tokens").to_pylist()))
        return counts

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
        search = self.chunks.query().nearest_to_text(words).select([*CANDIDATE, "_score"]).limit(query.depth)
        rows = await _fetched(search.where(where) if where else search)
        return _candidates(rows, [float(row["_score"]) for row in rows])

    async def _vector(self, query: Query, where: str) -> tuple[Candidate, ...]:
        if query.vector is None:
            return ()
        vector = unit(query.vector, self.info.recipe.dimension, "the question")
        if not any(vector):
            return ()
        search = _near(self.chunks, vector, CANDIDATE, where).limit(query.depth)
        search = search.bypass_vector_index() if query.exact else search.nprobes(self.clusters.probes(self.info.chunks))
        leg = await _cosines(search)
        if self.info.recipe.questions:
            leg = nearest(
                leg, await _cosines(_near(self.chunks, vector, CANDIDATE, where, QUESTIONS).limit(query.depth))
            )
        if self.summaries is None:
            return leg
        rows = await _fetched(_near(self.summaries, vector, ["url"], where).limit(PAGES))
        pages = [SummaryHit(row["url"], 1.0 - float(row["_distance"])) for row in rows]
        if urls := pages_without_chunks(leg, pages, query.depth):
            within = " AND ".join(filter(None, (where, f"url IN ({quoted(urls)})")))
            search = _near(self.chunks, vector, CANDIDATE, within).limit(ROWS_OF_PAGES).bypass_vector_index()
            leg = (*leg, *best_of_each_page(await _cosines(search)))
        return raised_to_summaries(leg, pages, query.depth)


def _pages(rows: Sequence[dict[str, Any]]) -> tuple[Page, ...]:
    return tuple(to_page(row["record"]) for row in sorted(rows, key=lambda row: str(row["url"])))


def _count(texts: Sequence[str]) -> Counter[str]:
    return Counter(token for text in texts for token in set(text.split()))


def _near(table: Any, vector: Sequence[float], columns: list[str], where: str, by: str = "vector") -> Any:
    """A vector search. Vectors have length 1 or 0, so LanceDB's "dot" distance is 1 - cosine."""
    search = table.query().nearest_to(vector).column(by).distance_type("dot").select([*columns, "_distance"])
    return search.where(where) if where else search


async def _cosines(search: Any) -> tuple[Candidate, ...]:
    rows = await _fetched(search)
    return _candidates(rows, [1.0 - float(row["_distance"]) for row in rows])


def _candidates(rows: Sequence[dict[str, Any]], scores: Sequence[float]) -> tuple[Candidate, ...]:
    candidates = [
        Candidate(
            id=row["id"],
            url=row["url"],
            language=row["language"],
            score=score,
            dated=row["modified"],
            versions=tuple(row["versions"]),
            collection=row["collection"],
        )
        for row, score in zip(rows, scores, strict=True)
    ]
    return tuple(sorted(candidates, key=lambda candidate: (-candidate.score, candidate.id)))


def _words(texts: Sequence[LexicalText]) -> Any:
    """A query of LanceDB for these texts: each is analysed in its own language, and scores are added."""
    from lancedb.query import BooleanQuery, MatchQuery, Occur

    clauses = []
    for text in texts:
        terms = " ".join(list(dict.fromkeys(analyse(text.text, text.language)))[:MAX_TERMS])
        if terms and text.weight > 0:
            clauses.append((Occur.SHOULD, MatchQuery(terms, "tokens", boost=text.weight)))
    return BooleanQuery(clauses) if clauses else None


async def _fetched(search: Any) -> list[dict[str, Any]]:
    with lance_errors("search the index", IndexDamaged):  # a fixed version never changes, so only damage makes it fail
        rows: list[dict[str, Any]] = (await search.to_arrow()).to_pylist()
    return rows
