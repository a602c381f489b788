"""Repeats the answers that a language model gave to exactly the same messages, and collects the others."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.core.errors import ModelError
from app.core.turn import Completion, Done, Message, Text, Usage
from app.models.protocols import CallOptions, Model
from eval.cache import fingerprint
from eval.files import EvaluationError, Required, Row, json_lines, parse_row
from tests.scripted.model import usage_of, words

NAME = "recorded"


class _Answer(Row):
    key: Required
    text: str


class RecordedModel:
    """A `Model` that repeats the answers of a record, asks `otherwise` for others, and raises `ModelError` for the
    rest.

    `missing` has the messages that neither could answer, by their key in a record.
    """

    def __init__(self, record: Mapping[str, str], otherwise: Model | None = None) -> None:
        self.name = f"{NAME} {fingerprint(*(f'{key} {text}' for key, text in sorted(record.items())))[:8]}"
        self.missing: dict[str, Sequence[Message]] = {}
        self._record = record
        self.otherwise = otherwise

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer; options are ignored for a recorded one."""
        key = key_of(messages)
        if key in self._record:
            return Completion(self._record[key], usage_of(messages, self._record[key]))
        try:
            if self.otherwise is not None:
                return await self.otherwise.complete(messages, options)
        except ModelError:
            self.missing[key] = tuple(messages)
            raise
        self.missing[key] = tuple(messages)
        raise ModelError(f"There is no recorded answer to {messages[-1].content[:200]!r}.")

    async def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Usage | Done, None]:
        """The same answer, word by word."""
        completion = await self.complete(messages, options)
        for word in words(completion.text):
            yield Text(word)
        yield completion.usage
        yield Done()

    async def close(self) -> None:
        """Does nothing: it holds no connection."""


def key_of(messages: Sequence[Message]) -> str:
    """The key of these messages in a record; it depends on every word of them."""
    return fingerprint(*(part for message in messages for part in (message.role, message.content)))


def load_record(path: str | Path) -> dict[str, str]:
    """Answers by key, from JSONL with `key` and `text`. Raises `EvaluationError` for a wrong line."""
    rows = [parse_row(_Answer, where, row) for where, row in json_lines(path)]
    record = {row.key: row.text.strip() for row in rows}
    if not record:
        raise EvaluationError(f"{path}: it contains no line.")
    return record


def missing_lines(model: RecordedModel) -> str:
    """The unanswered messages as lines of a record, with null as `text`."""
    lines = (
        {"key": key, "messages": [_fields(message) for message in messages], "text": None}
        for key, messages in model.missing.items()
    )
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _fields(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}
