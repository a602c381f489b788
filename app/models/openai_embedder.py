"""Embeddings of an OpenAI-compatible server as a class of LlamaIndex."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding

from app.core.errors import ModelError
from app.core.types import Vector
from app.models import responses
from app.models.loop_thread import LoopThread
from app.models.openai import Endpoint, OnServer
from app.models.protocols import MOST_TEXTS, recorded_name

SMALL = 32
"""Texts in one call that every server takes: Text Embeddings Inference takes no more, unless `--max-client-batch-size` is set."""


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
        self._packed = {"encoding_format": "base64"}
        self._most = MOST_TEXTS

    async def _aget_query_embedding(self, query: str) -> Vector:
        return (await self._embed([self._prefixes[0] + query], {}))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[Vector]:
        prefixed = [self._prefixes[1] + text for text in texts]
        rows = [
            row
            for at in range(0, len(prefixed), self._most)
            for row in await self._some(prefixed[at : at + self._most])
        ]
        return [list(map(float, row)) for row in rows]

    async def _some(self, texts: list[str]) -> list[Vector]:
        """The vectors of so many texts as the server takes, in the form that it knows, both of which its refusals tell."""
        try:
            return await self._embed(texts, self._packed)
        except ModelError as error:
            if type(error) is not ModelError:
                raise
            if len(texts) > SMALL:
                self._most = SMALL
                parts = [await self._some(texts[at : at + SMALL]) for at in range(0, len(texts), SMALL)]
                return [row for part in parts for row in part]
            if not self._packed:
                raise
            self._packed = {}  # it may know numbers only
            return await self._embed(texts, self._packed)

    async def _embed(self, texts: Sequence[str], form: Mapping[str, str]) -> list[Vector]:
        body = {"model": self.model_name, "input": [text[: self._max_chars] for text in texts], **form, **self._extra}
        async with self._endpoint.post("embeddings", body, total=self._endpoint.timeout) as response:
            answer = await responses.read_body(response, responses.WHOLE_BYTES + len(texts) * responses.ROW_BYTES)
        return responses.embeddings(answer, len(texts), self._endpoint.url)

    def _get_query_embedding(self, query: str) -> Vector:
        return self._loop.run(self._aget_query_embedding(query))

    def _get_text_embeddings(self, texts: list[str]) -> list[Vector]:
        return self._loop.run(self._aget_text_embeddings(texts))

    def _get_text_embedding(self, text: str) -> Vector:
        return self._get_text_embeddings([text])[0]
