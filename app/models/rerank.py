"""Rerankers as LlamaIndex postprocessors: a model on a server or in this process scores how well each passage answers the question."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from numpy.typing import NDArray

from app.core.retries import OF_QUESTION
from app.models import responses
from app.models.batches import Batches
from app.models.local import InThreads, encodable
from app.models.loop_thread import LoopThread
from app.models.onnx import OnnxModel, directory_of, loaded
from app.models.openai import Endpoint, OnServer
from app.models.protocols import Closable

Form = Literal["cohere", "tei", "voyage"]


class ScoringReranker(BaseNodePostprocessor):  # type: ignore[misc]  # LlamaIndex isn't typed
    """Sorts nodes by the scores that `scores` gives to what embedders read of them. `name` is that of the model."""

    name: str

    def __init__(self, parts: Closable, **fields: Any) -> None:
        super().__init__(**fields)
        self._parts, self._loop = parts, LoopThread(self, parts)

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """The model's score for each passage, in the order of the passages. Raises `ModelError`."""
        raise NotImplementedError  # an abstract method would be one that LlamaIndex instruments

    async def aclose(self) -> None:
        """Close all connections of this event loop, and release weights."""
        await self._parts.close()

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("A reranker needs the question: query_bundle or query_str.")
        texts = [node.node.get_content(MetadataMode.EMBED) for node in nodes]
        for node, score in zip(nodes, await self.scores(query_bundle.query_str, texts), strict=True):
            node.score = score
        return sorted(nodes, key=lambda node: -node.score)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self._loop.run(self._apostprocess_nodes(nodes, query_bundle))


class HttpReranker(OnServer, ScoringReranker):
    """A model at `<url>/rerank`, in the API of Cohere (also Jina, vLLM), Text Embeddings Inference or Voyage."""

    provider: Form

    def __init__(self, endpoint: Endpoint, name: str, form: Form = "cohere") -> None:
        super().__init__(endpoint, name=name, provider=form)
        self._endpoint, self._batches = endpoint, Batches(name, endpoint.url)

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """See `ScoringReranker`."""
        return await self._batches.rows(passages, partial(self._scores, question), OF_QUESTION)

    async def _scores(self, question: str, passages: Sequence[str]) -> list[float]:
        if self.provider == "tei":
            body = {"query": question, "texts": list(passages), "truncate": True}
        else:
            most = "top_k" if self.provider == "voyage" else "top_n"
            body = {"model": self.name, "query": question, "documents": list(passages), most: len(passages)}
        async with self._endpoint.post("rerank", body, total=self._endpoint.timeout) as response:
            return responses.scores(await responses.read_body(response), len(passages), self._endpoint.url)


class OnnxReranker(ScoringReranker):
    """A cross-encoder in a directory, with scores in 0..1: the sigmoid of what the model says.

    Raises `SettingsError` as `OnnxEmbedder` does.
    """

    provider: ClassVar[str] = "local"
    in_process: ClassVar[bool] = True

    def __init__(self, path: str) -> None:
        directory, name = directory_of(path), f"local:{path}"
        model = InThreads(name, partial(loaded, directory, lambda: OnnxModel(directory)))
        super().__init__(model, name=name)
        self._model = model

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """See `ScoringReranker`. Raises `ModelError` if the model can't be loaded."""
        asked = encodable(question)

        async def score(passage: str) -> NDArray[np.float32]:
            return await self._model.call(lambda model: model.read(asked, encodable(passage)))

        scores = np.array(await asyncio.gather(*map(score, passages)), np.float64)
        return list((1 / (1 + np.exp(-np.clip(scores.reshape(-1), -700, 700)))).tolist())
