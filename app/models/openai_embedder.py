"""Embeddings of an OpenAI-compatible server as a class of LlamaIndex."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding

from app.core.errors import ModelError
from app.core.retries import OF_QUESTION, OF_RUN
from app.core.types import Vector
from app.models import responses
from app.models.batches import TOO_LARGE, Batches
from app.models.loop_thread import LoopThread
from app.models.openai import Endpoint, OnServer
from app.models.protocols import MOST_TEXTS, recorded_name


class OpenAIEmbedder(OnServer, BaseEmbedding):  # type: ignore[misc]  # LlamaIndex isn't typed
    """An embedding model at `<url>/embeddings`. Prefixes and length limit depend on the model. Raises `ModelError`.

    Callers that block have an event loop of their own.
    """

    provider: ClassVar[str] = "openai"
    index_name: str

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        *,
        prefixes: tuple[str, str] = ("", ""),
        max_chars: int = 8000,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        recorded = recorded_name(name, prefixes[1], extra_body)
        super().__init__(model_name=name, index_name=recorded, embed_batch_size=MOST_TEXTS)
        self._endpoint, self._loop = endpoint, LoopThread(self, endpoint)
        self._prefixes = prefixes
        self._max_chars = max_chars
        self._extra = dict(extra_body or {})
        self._packed, self._takes_packed = {"encoding_format": "base64"}, False
        self._batches = Batches(name, endpoint.url)

    async def _aget_query_embedding(self, query: str) -> Vector:
        (row,) = await self._batches.rows([self._prefixes[0] + query], partial(self._embed, {}), OF_QUESTION)
        return row

    async def _aget_text_embeddings(self, texts: list[str]) -> list[Vector]:
        rows = await self._batches.rows([self._prefixes[1] + text for text in texts], self._embed_packed, OF_RUN)
        return [list(map(float, row)) for row in rows]

    async def _embed_packed(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors in the form that the server knows, which its first answer tells."""
        try:
            rows = await self._embed(self._packed, texts)
        except ModelError as error:
            settled = self._takes_packed or not self._packed
            if settled or type(error) is not ModelError or error.status not in {0, *TOO_LARGE}:
                raise
            rows = await self._embed({}, texts)
            self._packed = {}
        else:
            self._takes_packed = bool(self._packed)
        return rows

    async def _embed(self, form: Mapping[str, str], texts: Sequence[str]) -> list[Vector]:
        body = {"model": self.model_name, "input": [text[: self._max_chars] for text in texts], **form, **self._extra}
        try:
            async with self._endpoint.post("embeddings", body, total=self._endpoint.timeout) as response:
                answer = await responses.read_body(response, responses.WHOLE_BYTES + len(texts) * responses.ROW_BYTES)
        except ModelError as error:
            if len(texts) > 1 or error.status not in TOO_LARGE:
                raise
            length = len(body["input"][0])
            told = f"{error} It refuses a text of {length} characters alone. If that is too long, set DOCS_TUNING__EMBEDDING_MAX_CHARS."
            raise ModelError(told, status=error.status, body=error.body) from error
        return responses.embeddings(answer, len(texts), self._endpoint.url)

    def _get_query_embedding(self, query: str) -> Vector:
        return self._loop.run(self._aget_query_embedding(query))

    def _get_text_embeddings(self, texts: list[str]) -> list[Vector]:
        return self._loop.run(self._aget_text_embeddings(texts))

    def _get_text_embedding(self, text: str) -> Vector:
        return self._get_text_embeddings([text])[0]
