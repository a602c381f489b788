"""Embedding models in this process: no server, no network.

Each has threads of its own, so neither the event loop nor searches of the store wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.core.types import Vector
from app.models.prefixes import recorded_name

QUERY_CHARS = 2000
"""Questions are cut to this length: a model reads 512 tokens of them, and each costs time."""
KEPT_QUERIES = 1000
"""Vectors of the latest questions that are kept, 3 to 8 KB each."""

log = logging.getLogger("app.models")


class Engine(Protocol):
    """A loaded model; its methods may run in several threads."""

    def embed(self, texts: Sequence[str], *, question: bool) -> NDArray[np.float32]:
        """A row for each text."""
        ...


class LocalEmbedder:
    """Embeds in threads of its own. The first call loads the model; vectors of the latest questions are kept."""

    def __init__(
        self,
        name: str,
        load: Callable[[], Engine],
        *,
        prefixes: tuple[str, str] = ("", ""),
        max_chars: int = 8000,
        threads: int = 0,
    ) -> None:
        self.name = recorded_name(name, prefixes[1])
        self.memory_mb = 0
        self._load = load
        self._prefixes = prefixes
        self._max_chars = max_chars
        self._threads = threads or os.cpu_count() or 1
        self._pool: ThreadPoolExecutor | None = None
        self._engine: Engine | None = None
        self._loading = threading.Lock()
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._dimension = 0

    async def dimension(self) -> int:
        """Length of the vectors; loads the model."""
        if not self._dimension:
            await self.embed_queries(["dimension"])
        return self._dimension

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each question. Raises `SettingsError` or `ModelError` if the model can't be loaded."""
        asked = [self._prefixes[0] + text[: min(QUERY_CHARS, self._max_chars)] for text in texts]
        if new := [text for text in dict.fromkeys(asked) if text not in self._kept]:
            vectors = await self._run(new, question=True)
            self._kept.update(zip(new, vectors, strict=True))
        found = [self._kept[text] for text in asked]
        for text in asked:
            self._kept.move_to_end(text)
        while len(self._kept) > KEPT_QUERIES:
            self._kept.popitem(last=False)
        return found

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each passage. Raises `SettingsError` or `ModelError` if the model can't be loaded."""
        return await self._run([self._prefixes[1] + text[: self._max_chars] for text in texts], question=False)

    async def close(self) -> None:
        """Release the weights and threads; a later call loads them again."""
        self._engine = None
        self._kept.clear()
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    async def _run(self, texts: Sequence[str], *, question: bool) -> list[Vector]:
        if not texts:
            return []
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "embedding")
        vectors = await asyncio.get_running_loop().run_in_executor(self._pool, self._embed, texts, question)
        self._dimension = len(vectors[0])
        return vectors

    def _embed(self, texts: Sequence[str], question: bool) -> list[Vector]:
        # C libraries take no lone surrogates
        readable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        rows = self._loaded().embed(readable, question=question)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return list((rows / np.where(lengths > 0, lengths, 1)).tolist())

    def _loaded(self) -> Engine:
        with self._loading:
            if self._engine is None:
                before, began = resident_mb(), time.monotonic()
                self._engine = self._load()
                self._engine.embed(["memory"], question=True)  # weights are mapped, and read only when they are used
                self.memory_mb = resident_mb() - before
                log.info(
                    "embedding model loaded model=%r seconds=%.1f memory_mb=%d",
                    self.name, time.monotonic() - began, self.memory_mb,
                )  # fmt: skip
            return self._engine


def resident_mb() -> int:
    """The memory of this process in megabytes; 0 where the system doesn't say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000
