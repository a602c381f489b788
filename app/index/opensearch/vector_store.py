"""Searches through LlamaIndex's `OpensearchVectorStore`, with the same candidates as our own requests.

Used by the retriever for LlamaIndex; the service itself doesn't import it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.vector_stores.opensearch import OpensearchVectorClient, OpensearchVectorStore

from app.core.types import Candidate, Query, Vector
from app.index.opensearch.catalog import Published
from app.index.opensearch.connection import ALL_SHARDS, Connection
from app.index.opensearch.generation import OpenSearchGeneration
from app.index.opensearch.query import WORDS_OF_ALL, lexical_clauses, nearest_summaries, restrictions, summary_hits
from app.index.opensearch.rows import alive
from app.index.ranking.legs import SummaryHit

Found = dict[str, tuple[Candidate, ...]]


class VectorStoreGeneration(OpenSearchGeneration):
    """A generation whose candidates come from `OpensearchVectorStore`: one query of its text search, one of its k-NN search.

    Not from its hybrid search, because that returns only merged scores of the first few hits.
    """

    def __init__(self, connection: Connection, published: Published, ef_search: int = 0) -> None:
        super().__init__(connection, published, ef_search)
        client = _Client(
            connection.url,
            published.chunks,
            published.info.recipe.dimension,
            text_field="tokens",
            engine="lucene",
            excluded_source_fields=["embedding", "content", "sections"],
            os_client=_Calls(connection),
            os_async_client=_Calls(connection),
        )
        self._vector_store = OpensearchVectorStore(client)

    async def _found(self, query: Query) -> tuple[Found, tuple[SummaryHit, ...]]:
        clauses = lexical_clauses(query.texts)
        # the class has one text and one vector in a query, and no exact search
        if query.exact or len(clauses) > 1 or self.info.recipe.questions:
            return await super()._found(query)
        lexical, vector, summaries = await asyncio.gather(
            self._lexical(clauses, query), self._nearest(query), self._summaries(query)
        )
        return {"lexical": lexical, "vector": vector}, summaries

    async def _lexical(self, clauses: Sequence[Mapping[str, Any]], query: Query) -> tuple[Candidate, ...]:
        if not clauses:
            return ()
        match = clauses[0]["match"]["tokens"]
        asked = {"query_str": match["query"], "mode": VectorStoreQueryMode.TEXT_SEARCH}
        return await self._query(query, (match["boost"], 0.0), **asked)

    async def _nearest(self, query: Query) -> tuple[Candidate, ...]:
        if not _searchable(query.vector):
            return ()
        # Lucene's score is (1 + cosine) / 2
        return await self._query(query, (2.0, -1.0), query_embedding=query.vector)

    async def _query(self, query: Query, scale: tuple[float, float], **asked: Any) -> tuple[Candidate, ...]:
        restrict = [*alive(self.info.id), *restrictions(query.filters)]
        result = await self._vector_store.aquery(
            VectorStoreQuery(similarity_top_k=query.depth, filters=restrict, **asked)
        )
        return tuple(
            Candidate(
                id=id_.rpartition("-")[0],  # without the generation
                url=node.metadata["url"],
                language=node.metadata["language"],
                score=score * scale[0] + scale[1],
                dated=node.metadata.get("dated", ""),
                versions=tuple(node.metadata["versions"]),
                collection=node.metadata["collection"],
            )
            for id_, node, score in zip(result.ids, result.nodes, result.similarities, strict=True)
        )

    async def _summaries(self, query: Query) -> tuple[SummaryHit, ...]:
        if not self.info.recipe.summaries or not _searchable(query.vector):
            return ()
        body, params = nearest_summaries(query, self.info.id), ALL_SHARDS
        return summary_hits(
            await self._connection.call("POST", f"/{self._published.pages}/_search", body, params=params)
        )


def _searchable(vector: Vector | None) -> bool:
    """True if it is there, and not of zeros only, which have no cosine."""
    return vector is not None and any(vector)


class _Client(OpensearchVectorClient):  # type: ignore[misc]  # LlamaIndex isn't typed
    """Accepts filters as clauses of OpenSearch: MetadataFilters has none for beginnings of addresses and their parts."""

    def _parse_filters(self, filters: Sequence[dict[str, Any]] | None) -> list[dict[str, Any]]:
        return list(filters or ())


class _Calls:
    """The calls that `OpensearchVectorClient` makes of AsyncOpenSearch, on our connection and with our errors."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.indices = self

    async def info(self) -> Any:
        """Facts about the server."""
        return await self._connection.call("GET", "/")

    async def get(self, index: str) -> Any:
        """Facts about the index. Raises `StoreError` if it is missing, so that none is created."""
        return await self._connection.call("GET", f"/{index}")

    async def search(self, index: str, body: dict[str, Any], params: object) -> Any:  # noqa: ARG002  # only for hybrid queries
        """The response to a search."""
        # OpenSearch warns of the name that the class uses
        body = body | {"_source": {"excludes": body["_source"]["exclude"]}, "track_total_hits": False}
        return await self._connection.call("POST", f"/{index}/_search", body, params=ALL_SHARDS | WORDS_OF_ALL)
