"""The embedding class for LlamaIndex."""

from __future__ import annotations

import weakref

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.embeddings import BaseEmbedding

from app.core.settings import Settings
from app.core.types import Vector
from app.models import Embedder, open_embedder
from app.retriever.loop import LoopThread


class DocsAssistantEmbedding(BaseEmbedding):  # type: ignore[misc]  # LlamaIndex isn't typed
    """The configured embedder (DOCS_EMBEDDING_...), with its prefixes: for LlamaIndex's own searches in our index.

    Raises `SettingsError` for invalid settings, and `ModelError` if the embedder fails.
    """

    _embedder: Embedder = PrivateAttr()
    _loop: LoopThread = PrivateAttr()

    def __init__(self, settings: Settings | None = None) -> None:
        embedder = open_embedder(settings or Settings.load())
        super().__init__(model_name=embedder.name)
        self._embedder, self._loop = embedder, LoopThread()
        weakref.finalize(self, self._loop.close, embedder)

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(self._loop.run(self._embedder.embed_queries([query]))[0])

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return list((await self._loop.arun(self._embedder.embed_queries([query])))[0])

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return _lists(self._loop.run(self._embedder.embed_passages(texts)))

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return _lists(await self._loop.arun(self._embedder.embed_passages(texts)))


def _lists(vectors: list[Vector]) -> list[list[float]]:
    return [list(vector) for vector in vectors]
