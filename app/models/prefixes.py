"""What embedding models need in front of questions and passages, by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
    """Whether the model with this name is known to bring texts in different languages together."""
    return bool(_MULTILINGUAL.search(model.lower().replace("_", "-")))


def recorded_name(model: str, passage_prefix: str, extra: Mapping[str, Any] | None = None) -> str:
    """The name that the index records: the model and the settings that change its vectors."""
    length = [f"dimensions={extra['dimensions']}"] if extra and "dimensions" in extra else []
    return " ".join([model, *length, *([f"prefix={passage_prefix!r}"] if passage_prefix else [])])
