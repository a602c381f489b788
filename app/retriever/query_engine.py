"""The query engine for LlamaIndex."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.query_engine import BaseQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from app.api.parsing import validated
from app.api.request_models import ChatRequest
from app.core.turn import Source
from app.retriever.nodes import source_node
from app.retriever.retriever import DocsAssistantRetriever

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
        given = self._retriever.request.model_dump(include={"model", "language", "filters"})
        body = validated(ChatRequest, {**given, "messages": [{"role": "user", "content": question}]})
        answer, found = await asyncio.gather(
            self._retriever.backend.answer(body), self._retriever.search(question, SEARCHED)
        )
        nodes = [node for source in answer.sources for node in _nodes(source, found)]
        return Response(answer.text, source_nodes=nodes, metadata={"extractive": answer.extractive})


def _nodes(source: Source, found: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    fallback = source_node(source)
    nodes = [node for node in found if node.metadata["url"] == fallback.metadata["url"]] or [fallback]
    for node in nodes:
        node.node.metadata["number"] = source.number
    return nodes
