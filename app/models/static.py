"""Embeddings without a model server: static word vectors of wordllama, whose weights are inside its wheel.

Made for English. In Czech they cover only borrowed words and names, so lexical search dominates there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelError, SettingsError
from app.models.local import LocalEmbedder

DIMENSION = 256
NAME = f"wordllama-{DIMENSION}"
"""Name of the embedder in an index."""


class StaticEmbedder(LocalEmbedder):
    """Vectors of 256 numbers; zeros for a text without words. The first call loads the weights (0.25 s, 50 MB)."""

    instant = True  # 0.2 ms a question

    def __init__(self) -> None:
        super().__init__(NAME, StaticEngine)


class StaticEngine:
    """The words of a text looked up in the table of wordllama."""

    def __init__(self) -> None:
        self._model = _load()
        self._model.embedding = self._model.embedding.astype(np.float16)  # as in the file: the same sums in 16 MB less

    def embed(self, texts: Sequence[str], *, question: bool) -> NDArray[np.float32]:  # noqa: ARG002  # embedded alike
        """A row for each text."""
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        if filled := [i for i, text in enumerate(texts) if text.strip()]:
            vectors[filled] = self._model.embed([texts[i] for i in filled], norm=False, batch_size=32)
        return vectors


def _load() -> Any:
    try:
        with _root_logger_untouched():
            import wordllama
    except ImportError as error:
        raise SettingsError(
            "The static vectors need wordllama, which isn't installed: "
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
