"""Protocols of language models and embedders. Their failures are `ModelError`s."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.core.types import Vector


@dataclass(frozen=True, slots=True)
class CallOptions:
    """Options of one call; None means the default of the model's server. `timeout` in seconds applies to the whole call
    of `complete`, and to each wait (headers, next piece) of `stream`.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    timeout: float | None = None


class Model(Protocol):
    """A chat model."""

    @property
    def name(self) -> str:
        """The name of the model on its server."""
        ...

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer, without reasoning."""
        ...

    def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Reasoning | Usage | Done, None]:
        """Stream the answer; the last event is Done. Closing the iterator cancels the upstream call."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def for_index(embedder: Embedder, built_with: str) -> Embedder:
    """The embedder of an index that records this name: among several, the one of that name; else the given one."""
    others: Mapping[str, Embedder] = getattr(embedder, "others", {})
    return others.get(built_with, embedder)


class Closable(Protocol):
    """An object that holds connections."""

    async def close(self) -> None:
        """Close the connections."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    @property
    def name(self) -> str:
        """The name that the index records; a different name means incompatible vectors."""
        ...

    async def dimension(self) -> int:
        """Length of the vectors (may call the server once)."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
