"""What a language model once answered, by exactly what it was asked; what isn't there is kept, to be answered later."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.core.errors import ModelError
from app.core.turn import Completion, Done, Message, Text, Usage
from app.models.protocols import CallOptions, Model
from eval.cache import fingerprint
from eval.errors import EvaluationError
from eval.files import json_lines, text_field
from eval.scripted.model import usage_of, words

NAME = "recorded"


class RecordedModel:
    """A `Model` that repeats the answers of a record, asks `otherwise` for the rest, else raises `ModelError`.

    `missing` holds the messages that neither could answer, by their key in a record.
    """

    def __init__(self, record: Mapping[str, str], otherwise: Model | None = None) -> None:
        self.name = f"{NAME} {fingerprint(*(f'{key} {text}' for key, text in sorted(record.items())))[:8]}"
        self.missing: dict[str, Sequence[Message]] = {}
        self._record = record
        self.otherwise = otherwise

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer; options change nothing in a recorded one."""
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
        """Nothing to let go of."""


def key_of(messages: Sequence[Message]) -> str:
    """The key of these messages in a record: another prompt, passage or question has another one."""
    return fingerprint(*(part for message in messages for part in (message.role, message.content)))


def load_record(path: str | Path) -> dict[str, str]:
    """Answers by key, from JSONL with `key` and `text`. Raises `EvaluationError` for a wrong line."""
    record = {text_field(where, row, "key", required=True): _text(where, row) for where, row in json_lines(Path(path))}
    if not record:
        raise EvaluationError(f"{path}: there is no line in it.")
    return record


def missing_lines(model: RecordedModel) -> str:
    """What the model was asked in vain, as lines of a record whose `text` is still null."""
    lines = (
        {"key": key, "messages": [_fields(message) for message in messages], "text": None}
        for key, messages in model.missing.items()
    )
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _text(where: str, row: Mapping[str, Any]) -> str:
    if row.get("text") is None:  # an empty one is an answer, too
        raise EvaluationError(f"{where}: 'text' isn't there: nobody has answered these messages yet.")
    return text_field(where, row, "text")


def _fields(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}
