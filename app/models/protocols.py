"""Options of calls to language models, and the names and prefixes of embedders."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

AUTO = "auto"
MOST_TEXTS = 2048
"""The most that LlamaIndex lets a batch have: callers cut batches, and a local model reads each text alone."""
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


def recorded_name(model: str, passage_prefix: str, extra: Mapping[str, Any] | None = None) -> str:
    """The name that the index records: the model and the settings that change its vectors."""
    length = [f"dimensions={extra['dimensions']}"] if extra and "dimensions" in extra else []
    return " ".join([model, *length, *([f"prefix={passage_prefix!r}"] if passage_prefix else [])])


def missing(*packages: str) -> str:
    """Those of the packages that aren't installed; empty without any."""
    return " and ".join(name for name in packages if find_spec(name) is None)


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


class Closable(Protocol):
    """An object that holds connections."""

    async def close(self) -> None:
        """Close the connections."""
