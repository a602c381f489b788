"""Rerankers on an HTTP server: a model scores how well each passage answers the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from app.models import responses
from app.models.openai import Endpoint

Form = Literal["cohere", "tei", "voyage"]


class Reranker:
    """A model at `<url>/rerank`, in the API of Cohere (also Jina, vLLM), Text Embeddings Inference or Voyage."""

    def __init__(self, endpoint: Endpoint, name: str, form: Form = "cohere") -> None:
        self.name = name
        self._endpoint = endpoint
        self.probe = endpoint.probe
        self._form = self.provider = form

    async def rerank(self, question: str, passages: Sequence[str]) -> list[float]:
        """The model's score for each passage, in the order of the passages. Raises `ModelError`."""
        if self._form == "tei":
            body = {"query": question, "texts": list(passages), "truncate": True}
        else:
            most = "top_k" if self._form == "voyage" else "top_n"
            body = {"model": self.name, "query": question, "documents": list(passages), most: len(passages)}
        async with self._endpoint.post("rerank", body, total=self._endpoint.timeout) as response:
            return responses.scores(await responses.read_body(response), len(passages), self._endpoint.url)

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoint.close()
