"""Rerankers behind an HTTP server: how well each passage answers the question, read together by one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from app.models import responses
from app.models.openai import Endpoint

Form = Literal["cohere", "tei", "voyage"]


class Reranker:
    """A model behind `<url>/rerank`: in the form of Cohere, Jina and vLLM, of Text Embeddings Inference, or of Voyage."""

    def __init__(self, endpoint: Endpoint, name: str, form: Form = "cohere") -> None:
        self.name = name
        self._endpoint = endpoint
        self._form = form

    async def rerank(self, question: str, passages: Sequence[str]) -> list[float]:
        """A score for each passage, in their order and as the model gives it. Raises `ModelError`."""
        if self._form == "tei":
            body = {"query": question, "texts": list(passages), "truncate": True}
        else:
            most = "top_k" if self._form == "voyage" else "top_n"
            body = {"model": self.name, "query": question, "documents": list(passages), most: len(passages)}
        async with self._endpoint.post("rerank", body, total=self._endpoint.timeout) as response:
            return responses.scores(await responses.read_body(response), len(passages), self._endpoint.url)

    async def close(self) -> None:
        """Let go of connections."""
        await self._endpoint.close()
