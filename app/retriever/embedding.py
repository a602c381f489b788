"""The embedding class for LlamaIndex."""

from __future__ import annotations

import weakref

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.embeddings import BaseEmbedding

from app.core.errors import NoIndex
from app.core.settings import Settings
from app.core.types import Vector
from app.index import open_store
from app.models import Embedder, open_embedder
from app.models.protocols import for_index
from app.retriever.loop import LoopThread


class DocsAssistantEmbedding(BaseEmbedding):  # type: ignore[misc]  # LlamaIndex isn't typed
    """The configured embedder (DOCS_EMBEDDING_...), with its prefixes: for LlamaIndex's own searches in our index.

    If none is configured, it is the one that the index at DOCS_STORE was built with. The constructor raises `SettingsError`
    for invalid settings and `StoreError` for an index that can't be read; calls raise `ModelError` if the embedder fails.
    """

    _embedder: Embedder = PrivateAttr()
    _loop: LoopThread = PrivateAttr()

    def __init__(self, settings: Settings | None = None) -> None:
        settings = settings or Settings.load()
        configured = open_embedder(settings)
        super().__init__(model_name=configured.name)
        self._loop = LoopThread()
        weakref.finalize(self, self._loop.close, configured)
        self._embedder = self._loop.run(_of_index(configured, settings))
        self.model_name = self._embedder.name

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


async def _of_index(configured: Embedder, settings: Settings) -> Embedder:
    if not hasattr(configured, "others"):
        return configured
    store = open_store(settings)
    try:
        return for_index(configured, (await store.live()).info.recipe.embedder)
    except NoIndex:
        return configured
    finally:
        await store.close()


def _lists(vectors: list[Vector]) -> list[list[float]]:
    return [list(vector) for vector in vectors]
