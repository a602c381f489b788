"""The retriever for LlamaIndex."""

from __future__ import annotations

import weakref
from typing import Any, Self

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from app.api.parsing import validated
from app.api.request_models import SearchRequest
from app.core.settings import Settings
from app.retriever.backend import open_backend
from app.retriever.loop import LoopThread
from app.retriever.nodes import passage_node


class DocsAssistantRetriever(BaseRetriever):  # type: ignore[misc]  # LlamaIndex isn't typed
    """Returns the passages that `POST /v1/search` returns, with the same ids, order and scores; calls no language model.

    `address` is that of a running service (http://localhost:8000), or an index as in DOCS_STORE (a directory, or
    opensearch://host:9200/index), or `Settings`; by default the index that is configured. `similarity_top_k` (1 to 50) is
    the number of passages, by default DOCS_TOP_K. `api_key` is for a service. `options` are further fields of
    `/v1/search`: `filters`, `language` and `model` (the assistant whose pages are searched).

    The metadata of a node: `url`, `anchor`, `link` (both together), `title`, `section` (the heading at the link),
    `heading_path` (of the first section in the passage), `language`, `translated_from`, `collection`, `published` and
    `modified`. All failures are `AssistantError`s; the constructor raises `SettingsError` and `RequestError`.
    """

    def __init__(
        self,
        address: str | Settings = "",
        *,
        similarity_top_k: int | None = None,
        api_key: str = "",
        **options: Any,
    ) -> None:
        super().__init__()
        values = {**options, "query": "", "limit": similarity_top_k}
        self.request: SearchRequest = validated(SearchRequest, values, "The arguments")
        self.backend = open_backend(address, api_key)
        self.loop = LoopThread()
        weakref.finalize(self, self.loop.close, self.backend)

    async def search(self, query: str, limit: int | None = None) -> list[NodeWithScore]:
        """The nodes, best first, at most `limit`. Call it in `loop`."""
        changed = {"query": query} | ({"limit": limit} if limit else {})
        found = await self.backend.search(self.request.model_copy(update=changed))
        return [passage_node(passage) for passage in found["data"]]

    def close(self) -> None:
        """Close all connections, which otherwise are closed with the retriever. A later search opens them again."""
        self.loop.close(self.backend)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.loop.run(self.search(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self.loop.arun(self.search(query_bundle.query_str))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
