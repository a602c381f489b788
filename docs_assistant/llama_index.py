"""LlamaIndex classes for programs: a retriever and a query engine over an index or a running service, the configured embedder and
vector store, and the boxes of the service itself, which are its splitter, retriever and query engine.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import urldefrag

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.query_engine import BaseQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from app.assistants.query_engine import AssistantQueryEngine
from app.core.settings import Settings
from app.core.turn import Source
from app.http.bodies import validated
from app.index.opensearch.vector_store import open_vector_store
from app.index.retriever import GenerationRetriever
from app.models import open_embedder
from app.models.loop_thread import LoopThread
from app.routes.answer_models import Passage
from app.routes.request_models import ChatRequest, SearchRequest
from docs_assistant.search import open_backend
from ingestion.site_reader import DocsSiteReader
from ingestion.split.parsers import SectionParser

__all__ = [
    "AssistantQueryEngine",
    "DocsAssistantQueryEngine",
    "DocsAssistantRetriever",
    "DocsSiteReader",
    "GenerationRetriever",
    "SectionParser",
    "open_embedding",
    "open_vector_store",
]

SHOWN = ("title", "heading_path", "link")
"""The metadata that a language model reads with the text."""


def passage_node(passage: Passage) -> NodeWithScore:
    """The passage with the id of its chunk, its score, and where it comes from."""
    facts = ("section", "language", "translated_from", "collection", "published", "modified")
    metadata: dict[str, Any] = {
        "title": passage["title"],
        "heading_path": " > ".join(passage["headings"]),
        **_address(passage["url"]),
        **{name: passage[name] for name in facts},  # type: ignore[literal-required]
    }
    return _node(passage["id"], passage["text"], metadata, passage["score"])


def source_node(source: Source) -> NodeWithScore:
    """The section of a source, with the beginning of its text."""
    metadata = {
        "title": source.title,
        "heading_path": " > ".join(part for part in (source.title, source.section) if part),
        **_address(source.url),
        **{name: getattr(source, name) for name in ("section", "language", "translated_from")},
    }
    return _node(source.url, source.snippet, metadata, source.score)


def _address(link: str) -> dict[str, str]:
    url, anchor = urldefrag(link)
    return {"url": url, "link": link, "anchor": anchor}


def _node(id_: str, text: str, metadata: dict[str, Any], score: float) -> NodeWithScore:
    hidden = [name for name in metadata if name not in SHOWN]
    node = TextNode(
        id_=id_,
        text=text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=metadata["url"])},
    )
    return NodeWithScore(node=node, score=score)


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
        self, address: str | Settings = "", *, similarity_top_k: int | None = None, api_key: str = "", **options: Any
    ) -> None:
        super().__init__()
        values = {**options, "query": "", "limit": similarity_top_k}
        self.request: SearchRequest = validated(SearchRequest, values, "The arguments")
        self.backend = open_backend(address, api_key)
        self.loop = LoopThread(self, self.backend)

    async def search(self, query: str, limit: int | None = None) -> list[NodeWithScore]:
        """The nodes, best first, at most `limit`. Call it in `loop`."""
        changed = {"query": query} | ({"limit": limit} if limit else {})
        response = await self.backend.search(self.request.model_copy(update=changed))
        return [passage_node(passage) for passage in response["data"]]

    def close(self) -> None:
        """Close all connections, which otherwise are closed with the retriever. A later search opens them again."""
        self.loop.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.loop.run(self.search(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self.loop.arun(self.search(query_bundle.query_str))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


SEARCHED = 20  # passages; keywords of a language model may lead an answer to pages that the question alone ranks lower


class DocsAssistantQueryEngine(BaseQueryEngine):  # type: ignore[misc]  # LlamaIndex isn't typed
    """Answers as the assistant does, with its language model, its citations and its list of links.

    `source_nodes` are the passages of the cited pages in the order of their numbers, as the retriever returns them, with the
    `number` that the text cites in their metadata. A cited page that the retriever doesn't find has one node with the
    beginning of the cited section. `metadata["extractive"]` is true if no language model wrote the answer. For answers of a
    LlamaIndex LLM, give the retriever to LlamaIndex's `RetrieverQueryEngine` instead.
    """

    def __init__(self, retriever: DocsAssistantRetriever) -> None:
        super().__init__(callback_manager=retriever.callback_manager)
        self._retriever = retriever

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}  # the prompts are those of the assistant

    def _query(self, query_bundle: QueryBundle) -> Response:
        return self._retriever.loop.run(self._respond(query_bundle.query_str))

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        return await self._retriever.loop.arun(self._respond(query_bundle.query_str))

    async def _respond(self, question: str) -> Response:
        fields = self._retriever.request.model_dump(include={"model", "language", "filters"})
        body = validated(ChatRequest, {**fields, "messages": [{"role": "user", "content": question}]})
        answer, nodes_found = await asyncio.gather(
            self._retriever.backend.answer(body), self._retriever.search(question, SEARCHED)
        )
        nodes = [node for source in answer.sources for node in _nodes(source, nodes_found)]
        return Response(answer.text, source_nodes=nodes, metadata={"extractive": answer.extractive})


def _nodes(source: Source, found: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    fallback = source_node(source)
    nodes = [node for node in found if node.metadata["url"] == fallback.metadata["url"]] or [fallback]
    for node in nodes:
        node.node.metadata["number"] = source.number
    return nodes


def open_embedding(settings: Settings | None = None) -> BaseEmbedding:
    """The configured embedder (DOCS_EMBEDDING_...), with its prefixes: for LlamaIndex's own searches in our index.

    Raises `SettingsError` for invalid settings; calls raise `ModelError` if the embedder fails. Who called it in an event
    loop awaits its `aclose()` there at the end.
    """
    return open_embedder(settings or Settings.load()).embedding
