"""One published state of an index on an OpenSearch server, for reading."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from app.core.errors import IndexMismatch
from app.core.gate import Shared
from app.core.generation import GenerationInfo
from app.core.types import Candidate, Chunk, Legs, Page, PlainText, Query, Vector
from app.index.opensearch.catalog import Published
from app.index.opensearch.connection import ALL_SHARDS, Connection
from app.index.opensearch.query import (
    ANSWER,
    MOST_READ,
    PAGES_AT_ONCE,
    SET_FACTS,
    TOKENS_AT_ONCE,
    best_of_pages,
    candidates,
    legs,
    of_pages,
    summary_hits,
    tokens_of_chunks,
    translations,
    vectors_of_languages,
)
from app.index.opensearch.rows import alive, to_chunk, to_page, to_plain_text
from app.index.opensearch.writing import rows
from app.index.protocols import TranslationSets
from app.index.ranking.legs import SummaryHit, centres, nearest, pages_without_chunks, raised_to_summaries
from app.index.vocabulary import Vocabulary

SOURCES = "responses.hits.hits._source,responses.error,responses.status"


class OpenSearchGeneration:
    """See `app.index.protocols.Generation`."""

    def __init__(self, connection: Connection, published: Published, ef_search: int = 0) -> None:
        self._connection = connection
        self._published = published
        self._ef_search = ef_search
        self._translation_sets: Shared[TranslationSets] = Shared()
        self._vocabulary: Shared[Vocabulary] = Shared()
        self._language_centres: Shared[Mapping[str, Vector]] = Shared()

    @property
    def info(self) -> GenerationInfo:
        """The facts about this generation."""
        return self._published.info

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg, each best first, with raw scores."""
        dimension = self.info.recipe.dimension
        if query.vector is not None and len(query.vector) != dimension:
            raise IndexMismatch(
                f"The question's vector has {len(query.vector)} numbers, but the index was built with {dimension} "
                f"({self.info.recipe.embedder}). Set that embedder again, or ingest the sites with the new one."
            )
        candidates_of, summaries = await self._found(query)
        if summaries:
            candidates_of["vector"] = await self._with_summaries(candidates_of["vector"], summaries, query)
        return Legs(**candidates_of)

    async def _found(self, query: Query) -> tuple[dict[str, tuple[Candidate, ...]], tuple[SummaryHit, ...]]:
        """The candidates of each leg, and the pages with the nearest summaries."""
        names, lines = legs(self._published, query, self._ef_search)
        responses = dict(zip(names, await self._searches(lines, names, ANSWER), strict=True))
        summaries = summary_hits(responses.pop("summaries", {}))
        candidates_of = {name: candidates(name, response) for name, response in responses.items()}
        if "questions" in candidates_of:
            candidates_of["vector"] = nearest(candidates_of["vector"], candidates_of.pop("questions"))
        return candidates_of, summaries

    async def _with_summaries(
        self, leg: tuple[Candidate, ...], summaries: tuple[SummaryHit, ...], query: Query
    ) -> tuple[Candidate, ...]:
        if urls := pages_without_chunks(leg, summaries, query.depth):
            body, params = best_of_pages(urls, query, self.info.id), ALL_SHARDS
            answer = await self._connection.call("POST", f"/{self._published.chunks}/_search", body, params=params)
            leg = (*leg, *candidates("vector", answer))
        return raised_to_summaries(leg, summaries, query.depth)

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids."""
        rows = await self._chunk_rows(ids, {"excludes": ["*embedding", "tokens"]})
        chunks = {row["chunk"]: to_chunk(row) for row in rows}
        return tuple(chunks[id_] for id_ in ids if id_ in chunks)

    async def vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of the texts of these chunks."""
        rows = await self._chunk_rows(ids, ["chunk", "embedding"])
        return {row["chunk"]: row["embedding"] for row in rows if "embedding" in row}

    async def _chunk_rows(self, ids: Sequence[str], fields: object) -> list[dict[str, Any]]:
        """Returns these fields of the rows of the chunks with these ids."""
        if not ids:
            return []
        body = {
            "size": len(ids),
            "query": {"bool": {"filter": [{"terms": {"chunk": ids}}, *alive(self.info.id)]}},
            "_source": fields,
            "track_total_hits": False,
        }
        params = {"filter_path": "hits.hits._source", **ALL_SHARDS}
        answer = await self._connection.call("POST", f"/{self._published.chunks}/_search", body, params=params)
        return [hit["_source"] for hit in answer.get("hits", {}).get("hits", ())]

    async def translation_sets(self) -> TranslationSets:
        """The pages that are translations of each other. The first call reads them all."""
        return await self._translation_sets.get(self._read_translation_sets)

    async def _read_translation_sets(self) -> TranslationSets:
        facts: list[tuple[str, str, str]] = []
        params = {"filter_path": "hits.hits.fields,hits.hits.sort", **ALL_SHARDS}
        after: Sequence[str] = ()
        while True:
            body = translations(self.info.id, after)
            answer = await self._connection.call("POST", f"/{self._published.pages}/_search", body, params=params)
            hits = answer.get("hits", {}).get("hits", ())
            facts += (tuple(hit["fields"][name][0] for name in SET_FACTS) for hit in hits)
            if len(hits) < PAGES_AT_ONCE:
                return TranslationSets.read(facts)
            after = hits[-1]["sort"]

    async def language_centres(self) -> Mapping[str, Vector]:
        """The mean vector of the chunks in each language."""
        return await self._language_centres.get(self._read_language_centres)

    async def _read_language_centres(self) -> Mapping[str, Vector]:
        languages = self.info.languages
        lines = vectors_of_languages(self._published.chunks, languages, self.info.id)
        sources = await self._sources(lines, languages)
        return centres((code, row["embedding"]) for code, of in zip(languages, sources, strict=True) for row in of)

    async def chunks_of(self, urls: Collection[str]) -> Mapping[str, tuple[Chunk, ...]]:
        """The chunks of each of these pages, in order; pages without chunks are left out."""
        lines = of_pages(self._published.chunks, self._published.pages, urls, self.info.id)
        rows, pages = await self._sources(lines, ("chunks", "pages"))
        chunks = {row["chunk"]: to_chunk(row) for row in rows}
        ids = {page["metadata"]["url"]: page.get("chunk_ids", ()) for page in pages}
        return {url: tuple(chunks[id_] for id_ in own if id_ in chunks) for url, own in ids.items() if own}

    async def _sources(self, lines: bytes, names: Sequence[str]) -> list[list[dict[str, Any]]]:
        """The stored rows that each of these searches found."""
        responses = await self._searches(lines, names, SOURCES)
        return [[hit["_source"] for hit in response.get("hits", {}).get("hits", ())] for response in responses]

    async def _searches(self, lines: bytes, names: Sequence[str], parts: str) -> list[dict[str, Any]]:
        """The responses to these searches, in one call; none if there is nothing to search."""
        if not names:
            return []
        answer = await self._connection.call("POST", "/_msearch", lines, params={"filter_path": parts})
        for name, response in zip(names, answer["responses"], strict=True):
            if "error" in response:
                raise self._connection.rejection(int(response["status"]), response["error"], f"the {name} search")
        return list(answer["responses"])

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens."""
        if not tokens:
            return {}
        filters = {str(number): {"term": {"tokens": token}} for number, token in enumerate(tokens)}
        body = {
            "size": 0,
            "query": {"bool": {"filter": alive(self.info.id)}},
            "aggs": {"tokens": {"filters": {"filters": filters}}},
        }
        params = {"filter_path": "aggregations", **ALL_SHARDS}
        answer = await self._connection.call("POST", f"/{self._published.chunks}/_search", body, params=params)
        buckets = answer["aggregations"]["tokens"]["buckets"]
        return {token: buckets[str(number)]["doc_count"] for number, token in enumerate(tokens)}

    async def vocabulary(self) -> Vocabulary:
        """The words of the chunks; of the 10,000 with the lowest ids in a larger index. The first call reads them."""
        return await self._vocabulary.get(self._read_vocabulary)

    async def _read_vocabulary(self) -> Vocabulary:
        counts: Counter[str] = Counter()
        params = {"filter_path": "hits.hits._source.tokens,hits.hits.sort", **ALL_SHARDS}
        after: Sequence[str] = ()
        for _ in range(MOST_READ // TOKENS_AT_ONCE):
            body = tokens_of_chunks(self.info.id, after)
            answer = await self._connection.call("POST", f"/{self._published.chunks}/_search", body, params=params)
            hits = answer.get("hits", {}).get("hits", ())
            counts.update(await asyncio.to_thread(_count, hits))
            if len(hits) < TOKENS_AT_ONCE:
                break
            after = hits[-1]["sort"]
        return await asyncio.to_thread(Vocabulary.of, counts)

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of the pages with these addresses."""
        if not urls:
            return {}
        body = {
            "size": len(urls),
            "query": {"bool": {"filter": [{"terms": {"metadata.url": urls}}, *alive(self.info.id)]}},
            "_source": ["metadata.url", "plain"],
            "track_total_hits": False,
        }
        params = {"filter_path": "hits.hits._source", **ALL_SHARDS}
        answer = await self._connection.call("POST", f"/{self._published.pages}/_search", body, params=params)
        sources = [hit["_source"] for hit in answer.get("hits", {}).get("hits", ())]
        return {source["metadata"]["url"]: to_plain_text(source) for source in sources}

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown, by its public address."""
        only = ({"term": {"metadata.url": url}},)
        sources = rows(self._connection, self._published.pages, self.info.id, only=only, leave_out=("plain",))
        return next((to_page(source) for source in [source async for _, source in sources]), None)

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""
        sources = rows(self._connection, self._published.pages, self.info.id, leave_out=("markdown", "plain"))
        return tuple([to_page(source) async for _, source in sources])

    async def lost(self) -> str:
        """Empty: a damage of a server's index is an error."""
        return ""


def _count(hits: Sequence[Mapping[str, Any]]) -> Counter[str]:
    return Counter(token for hit in hits for token in set(hit["_source"]["tokens"].split()))
