"""Embeddings without a model server: static word vectors of wordllama, whose weights are inside its wheel.

Made for English. In Czech they cover only borrowed words and names, so lexical search dominates there.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from app.core.errors import ModelError, SettingsError
from app.core.types import Vector

DIMENSION = 256


class StaticEmbedder:
    """Embeds in this process without network access. The first call loads the weights (0.25 s, 50 MB)."""

    def __init__(self) -> None:
        self._model: Any = None
        self._loading = threading.Lock()

    @property
    def name(self) -> str:
        """The name that the index records; a different name means incompatible vectors."""
        return f"wordllama-{DIMENSION}"

    async def dimension(self) -> int:
        """Length of the vectors."""
        return DIMENSION

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each question; zeros for a text without words."""
        return await asyncio.to_thread(self._embed, list(texts))

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each passage; zeros for a text without words."""
        return await asyncio.to_thread(self._embed, list(texts))

    async def close(self) -> None:
        """Release the weights; a later call loads them again."""
        self._model = None

    def _embed(self, texts: list[str]) -> list[Vector]:
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        if filled:
            vectors[filled] = self._loaded().embed([texts[i] for i in filled], norm=False, batch_size=32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return [row.tolist() for row in vectors]

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                self._model = _load()
            return self._model


def _load() -> Any:
    try:
        with _root_logger_untouched():
            import wordllama
    except ImportError as error:
        raise SettingsError(
            "Embedding without a server needs wordllama, which isn't installed: "
            "install docs-assistant[embedded], or set DOCS_EMBEDDING_URL."
        ) from error
    folder = Path(wordllama.__file__).parent
    try:
        return wordllama.WordLlama.load(cache_dir=folder, dim=DIMENSION, trunc_dim=DIMENSION, disable_download=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"The vectors inside wordllama can't be read from {folder}: {error}. Reinstall it.") from error


@contextmanager
def _root_logger_untouched() -> Iterator[None]:
    """Context that restores the root logger, because importing wordllama calls `logging.basicConfig`."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
