"""Repeats an answer if the same question is asked again, as long as the index and the answers of editors are the same; off by default.

It is memory of one process, so it is empty after a start, with which prompts, models and pipelines may change.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from app.assistants.assistant import Assistant
from app.core import spans
from app.core.turn import AnswerRecord, Done, Event, Events, Message, Reasoning, Request, Text, Turn, Usage
from app.core.types import Legs
from app.text.analysis import normalized

ENTRIES = 1_000
SIZE = 16_000_000
"""Characters of all stored answers together."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """The events of an answer without those of its making, and what is kept and logged of its turn."""

    events: tuple[Event, ...]
    turn: Turn
    language: str
    made: float
    size: int


@dataclass
class AnswerCache:
    """Answers that are repeated for so many `seconds`. `clock` counts seconds; the least recently used ones are dropped."""

    seconds: float
    entries: int = ENTRIES
    size: int = SIZE
    clock: Callable[[], float] = time.monotonic
    _stored: OrderedDict[Hashable, _Stored] = field(default_factory=OrderedDict)
    _size: int = 0

    def answer(self, assistant: Assistant, request: Request, record: AnswerRecord, *, fresh: bool = False) -> Events:
        """As `Assistant.answer`; `record.cache` says whether it is a stored answer. A `fresh` one is made anew.

        What belongs to one client alone is neither stored nor repeated: conversations, system messages and attachments.
        """
        if len(request.messages) != 1 or request.messages[0].role != "user" or request.attached or request.trace:
            return assistant.answer(request, record)
        return self._answered(assistant, request, record, fresh=fresh)

    async def _answered(self, assistant: Assistant, request: Request, record: AnswerRecord, *, fresh: bool) -> Events:
        generation, edition = await assistant.store.live(), await assistant.edition()
        key = _key(assistant, request, generation, edition)
        if not fresh and (stored := self._found(key)):
            record.cache, record.age = "hit", self.clock() - stored.made
            record.turn = replace(stored.turn, request=request, generation=generation, calls=record.calls)
            record.steps_ended(stored.language)
            with spans.span("answer", {"docs_assistant.cached": True}, current=False):
                for event in stored.events:
                    yield event
            return
        record.cache = "miss"
        events: list[Event] = []
        async with aclosing(assistant.answer(request, record)) as answered:
            async for event in answered:
                events.append(event)
                if isinstance(event, Done) and record.turn and _is_repeatable(record.turn, event):
                    self._store(
                        _key(assistant, request, record.turn.generation, edition), events, record.turn, record.language
                    )
                yield event

    def _found(self, key: Hashable) -> _Stored | None:
        stored = self._stored.get(key)
        if stored and self.clock() - stored.made >= self.seconds:
            self._drop(key)
            return None
        if stored:
            self._stored.move_to_end(key)
        return stored

    def _store(self, key: Hashable, events: list[Event], turn: Turn, language: str) -> None:
        logged = _kept(turn)
        told = tuple(event for event in _joined(events) if not isinstance(event, Reasoning | Usage))
        stored = _Stored(told, logged, language, self.clock(), len(repr((told, logged))))
        self._drop(key)
        self._stored[key] = stored
        self._size += stored.size
        while len(self._stored) > self.entries or self._size > self.size:
            self._drop(next(iter(self._stored)))

    def _drop(self, key: Hashable) -> None:
        if stored := self._stored.pop(key, None):
            self._size -= stored.size


def _key(assistant: Assistant, request: Request, generation: Any, edition: Hashable) -> Hashable:
    """All that an answer depends on. The request as a whole, so that a new field of it can't be forgotten here."""
    asked = replace(request, id="", assistant="", messages=(Message("user", _normalized(request.question)),))
    info = generation.info
    return assistant.id, assistant.persona, assistant.limits, info.id, info.built_at, edition, asked


def _normalized(question: str) -> str:
    """The question without what doesn't change its meaning: spaces, a full stop or question mark at its end, capitals of ordinary words.

    Other capitals and marks may be parts of names: `-V` isn't `-v`, and `$?` isn't `$!`.
    """
    text = normalized("NFC", question).rstrip()
    without = text.rstrip(".?")
    words = (without if without[-1:].isalnum() else text).split()
    return " ".join(word.lower() if word.istitle() and word.isalpha() else word for word in words)


def _is_repeatable(turn: Turn, done: Done) -> bool:
    """True if the answer is complete, written by a model from pages, and nothing failed on the way."""
    complete = done.finish_reason == "stop" and not done.ending and done.language in ("", "corrected")
    written = not (done.extractive or done.refused or turn.reply or turn.choices)
    return complete and written and not any(record.error for record in turn.trace)


def _kept(turn: Turn) -> Turn:
    """Returns the parts of the turn that the logs get; the rest of it is large."""
    return Turn(
        turn.request,
        asked=turn.asked,
        search=turn.search and replace(turn.search, legs=Legs()),
        hits=turn.hits[:1],
        related=turn.related[:1],
        evidence=turn.evidence,
    )


def _joined(events: list[Event]) -> list[Event]:
    """The events, with texts that follow each other as one."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, Text) and isinstance(last, Text) and last.quoted == event.quoted:
            joined[-1] = replace(last, text=last.text + event.text)
        else:
            joined.append(event)
    return joined
