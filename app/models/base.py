"""The seam to language models and embedders. Failures are `ModelError`s."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.core.types import Vector


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How one call is made; None leaves it to the model's server. `timeout` in seconds is for the whole call
    of `complete`, and for each wait (headers, next piece) of `stream`.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    timeout: float | None = None


class Model(Protocol):
    """A language model that chats."""

    @property
    def name(self) -> str:
        """The name that its server knows it by."""
        ...

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer, without the model's thinking."""
        ...

    def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Reasoning | Usage | Done, None]:
        """The answer as it is written; ends with Done. Closing the iterator cancels the call upstream."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    @property
    def name(self) -> str:
        """What the index remembers: another name means other vectors."""
        ...

    async def dimension(self) -> int:
        """Length of the vectors (may ask the server once)."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
