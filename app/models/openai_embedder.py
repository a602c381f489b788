"""Embeddings of an OpenAI-compatible server as a class of LlamaIndex."""

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from app.core.types import Vector
from app.models.loop_thread import LoopThread
from app.models.openai import Embeddings, Endpoint
from app.models.protocols import MOST_TEXTS, callback_manager


class OpenAIEmbedder(Embeddings, BaseEmbedding):  # type: ignore[misc]  # LlamaIndex isn't typed
    """See `Embeddings`. Callers that block have an event loop of their own."""

    index_name: str

    def __init__(self, endpoint: Endpoint, name: str, **options: Any) -> None:
        made = {"index_name": "", "embed_batch_size": MOST_TEXTS, "callback_manager": callback_manager()}
        BaseEmbedding.__init__(self, model_name=name, **made)
        Embeddings.__init__(self, endpoint, name, **options)
        self._loop = LoopThread(self, endpoint)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[Vector]:
        return [list(map(float, row)) for row in await super()._aget_text_embeddings(texts)]

    def _get_query_embedding(self, query: str) -> Vector:
        return self._loop.run(self._aget_query_embedding(query))

    def _get_text_embeddings(self, texts: list[str]) -> list[Vector]:
        return self._loop.run(self._aget_text_embeddings(texts))

    def _get_text_embedding(self, text: str) -> Vector:
        return self._get_text_embeddings([text])[0]
