"""Rerankers behind an HTTP server: how well each passage answers the question, read together by one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import orjson

from app.core.errors import ModelError
from app.core.models.openai import Endpoint

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
            answer = await response.read()
        try:
            parsed = orjson.loads(answer)
            rows = parsed if isinstance(parsed, list) else parsed["data" if self._form == "voyage" else "results"]
            scores = {int(row["index"]): float(_score(row)) for row in rows}
            return [scores[index] for index in range(len(passages))]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"{self._endpoint.url} sent no scores for {len(passages)} passages: {answer[:200]!r}"
            ) from error

    async def close(self) -> None:
        """Let go of connections."""
        await self._endpoint.close()


def _score(row: dict[str, float]) -> float:
    return row["relevance_score"] if "relevance_score" in row else row["score"]
