"""Models without a server, for tests."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.core.errors import ModelUnavailable
from app.core.types import Vector

DIMENSION = 64
WORDS_SETTING = f"local:{Path(__file__).parent / 'words'}"
"""DOCS_EMBEDDING_MODEL of all tests that say nothing else: letters of words in vectors, in an instant (`tests/words/make.py`)."""
WORDS = "local:words#d5ad1674"
"""Its name in an index."""
WORDS_SIZE = 128


@dataclass
class FakeEmbedder:
    """Counts the words of a text into 64 places by their hash, and remembers every call.

    `failing_from` makes all calls from that number on raise `error`.
    """

    name: str = "fake-64"
    calls: list[tuple[str, ...]] = field(default_factory=list)
    failing_from: int | None = None
    error: Exception | None = None

    @property
    def texts(self) -> list[str]:
        """Every text embedded so far."""
        return [text for call in self.calls for text in call]

    def of(self, recorded: str) -> FakeEmbedder:
        """Itself: no other one can be opened."""
        if recorded != self.name:
            raise ModelUnavailable(f"{recorded} can't be opened.")
        return self

    async def dimension(self) -> int:
        """Length of the vectors."""
        return DIMENSION

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question."""
        return [_vector(text) for text in texts]

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        if self.failing_from is not None and len(self.calls) >= self.failing_from and self.error is not None:
            raise self.error
        self.calls.append(tuple(texts))
        return [_vector(text) for text in texts]

    async def close(self) -> None:
        """Nothing to let go of."""


def _vector(text: str) -> Vector:
    places = [0.0] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        places[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=2).digest()) % DIMENSION] += 1.0
    length = math.sqrt(sum(place * place for place in places)) or 1.0
    return [place / length for place in places]
