"""Embedding models in this process: no server, no network.

Each has threads of its own, so neither the event loop nor searches of the store wait for it.
"""

import asyncio
import logging
import os
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Generic, TypeVar

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from numpy.typing import NDArray

from app.core.log_message import LogMessage
from app.core.process import peak_mb
from app.core.types import Vector
from app.models.protocols import MOST_TEXTS, recorded_name

QUERY_CHARS = 1000
"""Questions are cut to this length, because each token costs time and the words find the rest."""
KEPT_QUERIES = 1000
"""Vectors of the latest questions that are kept, 2 to 6 KB each."""

log = logging.getLogger("app.models")


Engine = Callable[[str], NDArray[np.float32]]
"""A loaded embedding model: the vector of a text, of any length. May be called in several threads."""

L = TypeVar("L")
R = TypeVar("R")


class InThreads(Generic[L]):
    """A model that the first call loads, with threads in which all calls run."""

    def __init__(self, name: str, load: Callable[[], L]) -> None:
        self._name = name
        self._load = load
        self._pool: ThreadPoolExecutor | None = None
        self._model: L | None = None
        self._loading = threading.Lock()

    async def call(self, use: Callable[[L], R]) -> R:
        """The result of `use`, called with the model. Raises what loading the model raises."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(os.cpu_count(), "local-model")
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: use(self.loaded()))

    async def close(self) -> None:
        """Release the weights and threads; a later call loads them again."""
        self._model = None
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def loaded(self) -> L:
        """The model, which the first call loads."""
        with self._loading:
            if self._model is None:
                began = time.monotonic()
                self._model = self._load()
                seconds = round(time.monotonic() - began, 1)
                log.debug(LogMessage("model loaded", model=self._name, seconds=seconds, memory_mb=peak_mb()))
            return self._model


class LocalEmbedder(BaseEmbedding):  # type: ignore[misc]  # LlamaIndex isn't typed
    """Embeds in threads of its own, in vectors of length 1. The first call loads the model.

    Vectors of the latest questions are kept. Raises `SettingsError` or `ModelError` if the model can't be loaded.
    """

    provider: ClassVar[str] = "local"
    in_process: ClassVar[bool] = True
    index_name: str

    def __init__(
        self, name: str, load: Callable[[], Engine], *, prefixes: tuple[str, str] = ("", ""), max_chars: int = 8000
    ) -> None:
        super().__init__(
            model_name=name,
            index_name=recorded_name(name, prefixes[1]),
            embed_batch_size=MOST_TEXTS,
        )
        self._engine = InThreads(name, load)
        self._prefixes = prefixes
        self._max_chars = max_chars
        self._kept: OrderedDict[str, array[float]] = OrderedDict()  # a list takes four times as much

    async def aclose(self) -> None:
        """Release the weights and threads; a later call loads them again."""
        self._kept.clear()
        await self._engine.close()

    async def _aget_query_embedding(self, query: str) -> Vector:
        asked = self._question(query)
        if asked not in self._kept:
            self._keep(asked, await self._engine.call(lambda engine: _unit_vector(asked, engine)))
        self._kept.move_to_end(asked)
        return self._kept[asked].tolist()

    def _get_query_embedding(self, query: str) -> Vector:
        return _unit_vector(self._question(query), self._engine.loaded())

    async def _aget_text_embedding(self, text: str) -> Vector:
        passage = self._passage(text)
        return await self._engine.call(lambda engine: _unit_vector(passage, engine))

    def _get_text_embedding(self, text: str) -> Vector:
        return _unit_vector(self._passage(text), self._engine.loaded())

    def _question(self, query: str) -> str:
        return self._prefixes[0] + query[: min(QUERY_CHARS, self._max_chars)]

    def _passage(self, text: str) -> str:
        return self._prefixes[1] + text[: self._max_chars]

    def _keep(self, asked: str, vector: Vector) -> None:
        self._kept[asked] = array("d", vector)
        while len(self._kept) > KEPT_QUERIES:
            self._kept.popitem(last=False)


def _unit_vector(text: str, engine: Engine) -> Vector:
    vector = engine(encodable(text))
    length = np.linalg.norm(vector)
    return list((vector / (length if length > 0 else 1)).tolist())


def encodable(text: str) -> str:
    """The text with question marks for lone surrogates, which libraries in C and Rust refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")
