"""Protocols of language models and embedders, and the prefixes that embedders need. Their failures are `ModelError`s."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.core.types import Vector

AUTO = "auto"
_MULTILINGUAL = re.compile(
    r"multilingual|bge-m3|labse|gte-qwen2|qwen3-embedding|embeddinggemma|jina-embeddings-v[3-9]|nomic-embed-text-v2"
    r"|arctic-embed2|arctic-embed[^/\s]{0,40}v2|text-embedding-3"
)
_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_BGE = "Represent this sentence for searching relevant passages: "

_KNOWN = (
    (re.compile(r"e5.{0,40}-instruct|gte-qwen2"), f"Instruct: {_TASK}\nQuery: ", ""),
    (re.compile(r"qwen3-embedding"), f"Instruct: {_TASK}\nQuery:", ""),
    (re.compile(r"(^|-)e5-"), "query: ", "passage: "),
    (re.compile(r"embeddinggemma"), "task: search result | query: ", "title: none | text: "),
    (re.compile(r"nomic-embed-text"), "search_query: ", "search_document: "),
    (re.compile(r"snowflake-arctic-embed.{0,20}v2|arctic-embed2"), "query: ", ""),
    (re.compile(r"bge-(small|base|large)-en|mxbai-embed-large|snowflake-arctic-embed"), _BGE, ""),
)
"""Patterns of names with the prefixes from the cards of the models. The first that matches decides."""


def prefixes_of(model: str, query: str = AUTO, passage: str = AUTO) -> tuple[str, str]:
    """The prefixes of a question and of a passage: the given ones, or for `auto` those of a known model."""
    name = model.lower().replace("_", "-").rpartition("/")[2]
    known = next(((asked, read) for pattern, asked, read in _KNOWN if pattern.search(name)), ("", ""))
    return known[0] if query == AUTO else query, known[1] if passage == AUTO else passage


def is_multilingual(model: str) -> bool:
    """True if the model with this name is known to bring texts in different languages together."""
    return bool(_MULTILINGUAL.search(model.lower().replace("_", "-")))


def recorded_name(model: str, passage_prefix: str, extra: Mapping[str, Any] | None = None) -> str:
    """The name that the index records: the model and the settings that change its vectors."""
    length = [f"dimensions={extra['dimensions']}"] if extra and "dimensions" in extra else []
    return " ".join([model, *length, *([f"prefix={passage_prefix!r}"] if passage_prefix else [])])


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
