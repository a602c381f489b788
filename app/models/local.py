"""Embedding models in this process: no server, no network.

Each has threads of its own, so neither the event loop nor searches of the store wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.core.log_message import LogMessage
from app.core.process import peak_mb
from app.core.types import Vector
from app.models.protocols import recorded_name

QUERY_CHARS = 1000
"""Questions are cut to this length, because each token costs time and the words find the rest."""
KEPT_QUERIES = 1000
"""Vectors of the latest questions that are kept, 2 to 6 KB each."""

log = logging.getLogger("app.models")


class Engine(Protocol):
    """A loaded embedding model; `embed` may run in several threads."""

    def embed(self, texts: Sequence[str], *, question: bool) -> NDArray[np.float32]:
        """A row for each text."""
        ...


L = TypeVar("L")
R = TypeVar("R")


class InThreads(Generic[L]):
    """A model that the first call loads, with threads in which all calls run."""

    def __init__(self, name: str, load: Callable[[], L], threads: int) -> None:
        self._name = name
        self._load = load
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._model: L | None = None
        self._loading = threading.Lock()

    async def call(self, use: Callable[[L], R]) -> R:
        """The result of `use`, called with the model. Raises what loading the model raises."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "local-model")
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: use(self._loaded()))

    def close(self) -> None:
        """Release the weights and threads; a later call loads them again."""
        self._model = None
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _loaded(self) -> L:
        with self._loading:
            if self._model is None:
                began = time.monotonic()
                self._model = self._load()
                seconds = round(time.monotonic() - began, 1)
                log.debug(LogMessage("model loaded", model=self._name, seconds=seconds, memory_mb=peak_mb()))
            return self._model


class LocalEmbedder:
    """Embeds in threads of its own. The first call loads the model; vectors of the latest questions are kept."""

    def __init__(
        self,
        name: str,
        load: Callable[[], Engine],
        *,
        prefixes: tuple[str, str] = ("", ""),
        max_chars: int = 8000,
        threads: int = os.cpu_count() or 1,
    ) -> None:
        self.name = recorded_name(name, prefixes[1])
        self._engine = InThreads(name, load, threads)
        self._prefixes = prefixes
        self._max_chars = max_chars
        self._kept: OrderedDict[str, array[float]] = OrderedDict()  # a list takes four times as much
        self._dimension = 0

    async def dimension(self) -> int:
        """Length of the vectors; loads the model."""
        if not self._dimension:
            self._dimension = len((await self.embed_queries(["dimension"]))[0])
        return self._dimension

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each question. Raises `SettingsError` or `ModelError` if the model can't be loaded."""
        asked = [self._prefixes[0] + text[: min(QUERY_CHARS, self._max_chars)] for text in texts]
        vectors: dict[str, Vector] = {text: self._kept[text].tolist() for text in asked if text in self._kept}
        if new := [text for text in dict.fromkeys(asked) if text not in vectors]:
            vectors |= zip(new, await self._embed(new, question=True), strict=True)
        for text in asked:
            self._kept[text] = array("d", vectors[text])
            self._kept.move_to_end(text)
        while len(self._kept) > KEPT_QUERIES:
            self._kept.popitem(last=False)
        return [vectors[text] for text in asked]

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each passage. Raises `SettingsError` or `ModelError` if the model can't be loaded."""
        return await self._embed([self._prefixes[1] + text[: self._max_chars] for text in texts], question=False)

    async def close(self) -> None:
        """Release the weights and threads; a later call loads them again."""
        self._kept.clear()
        self._engine.close()

    async def _embed(self, texts: Sequence[str], *, question: bool) -> list[Vector]:
        return await self._engine.call(lambda engine: _unit_rows(engine, texts, question)) if texts else []


def _unit_rows(engine: Engine, texts: Sequence[str], question: bool) -> list[Vector]:
    rows = engine.embed([encodable(text) for text in texts], question=question)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return list((rows / np.where(lengths > 0, lengths, 1)).tolist())


def encodable(text: str) -> str:
    """The text with question marks for lone surrogates, which libraries in C and Rust refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")
