"""LlamaIndex's vector store over the published generation of an index in OpenSearch, for programs that use LlamaIndex."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryResult
from llama_index.vector_stores.opensearch import OpensearchVectorClient, OpensearchVectorStore

from app.core.errors import SettingsError, StoreError
from app.core.settings import Settings
from app.index.opensearch.catalog import Published
from app.index.opensearch.connection import Address, parse
from app.index.opensearch.store import OpenSearchStore


class PublishedVectorStore(OpensearchVectorStore):  # type: ignore[misc]  # LlamaIndex isn't typed
    """Reads one generation: its filter is part of each query, beside the query's own filters. Ids of nodes are those of chunks.

    A later run doesn't change what it finds, until the run drops that generation (`DOCS_GENERATIONS`). Writing raises `StoreError`.
    """

    def __init__(self, client: OpensearchVectorClient, generation: int) -> None:
        super().__init__(client)
        self._alive = [
            MetadataFilter(key="gen_from", value=generation, operator=FilterOperator.LTE),
            MetadataFilter(key="gen_to", value=generation, operator=FilterOperator.GT),
        ]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nearest chunks, or those with the words, as the mode of the query says."""
        return _of_chunks(super().query(self._within(query), **kwargs))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The same, awaited."""
        return _of_chunks(await super().aquery(self._within(query), **kwargs))

    def _within(self, query: VectorStoreQuery) -> VectorStoreQuery:
        own = [query.filters] if query.filters and query.filters.filters else []
        query.filters = MetadataFilters(filters=[*self._alive, *own])
        return query

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise StoreError("The index is read-only for LlamaIndex: docs-assistant ingest writes it.")

    async def _arefuse(self, *_: object, **__: object) -> NoReturn:
        self._refuse()

    add = delete = delete_nodes = clear = _refuse
    async_add = adelete = adelete_nodes = aclear = _arefuse


def _of_chunks(result: VectorStoreQueryResult) -> VectorStoreQueryResult:
    """The result with the ids of chunks in place of those of rows, which end with a generation."""
    result.ids = [id_.rpartition("-")[0] for id_ in result.ids or ()]
    for node, id_ in zip(result.nodes or (), result.ids, strict=True):
        node.id_ = id_
    return result


def open_vector_store(settings: Settings | None = None) -> PublishedVectorStore:
    """The store for `VectorStoreIndex.from_vector_store`, over what is published now in the index that DOCS_STORE names.

    Raises `SettingsError` if that isn't in OpenSearch, `NoIndex` if nothing is published, and `StoreUnavailable`.
    """
    settings = settings or Settings.load()
    if not settings.store.startswith(("opensearch://", "opensearchs://")):
        raise SettingsError("DOCS_STORE isn't in OpenSearch: LlamaIndex's store needs opensearch://host:9200/index.")
    address = parse(settings.store)
    with ThreadPoolExecutor(1) as thread:  # the caller may run an event loop
        live = thread.submit(asyncio.run, _published(address, settings)).result()
    tls = {"ca_certs": settings.store_ca or None} if address.hosts[0].startswith("https:") else {}
    client = OpensearchVectorClient(
        address.hosts[0],
        live.chunks,  # not the alias, which moves with the next run
        live.info.recipe.dimension,
        engine="lucene",
        search_pipeline=f"{address.index}-hybrid",
        http_auth=address.auth,
        timeout=settings.tuning.store_timeout,
        **tls,
    )
    return PublishedVectorStore(client, live.info.id)


async def _published(address: Address, settings: Settings) -> Published:
    store = OpenSearchStore(address, ca=settings.store_ca, timeout=settings.tuning.store_timeout)
    try:
        return (await store.live()).published
    finally:
        await store.close()
