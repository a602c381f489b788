"""The record of one answer: filled while the answer is made, read by logs and metrics when it has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from app.core.errors import Overloaded, RequestError
from app.core.turn import Calls, Done, Event, Failure, Source, StepRecord, Text, Turn

Outcome = Literal["", "written", "extractive", "refused", "smalltalk", "clarified", "failed", "cancelled"]
WRITER = "synthesize"  # the step whose work is done while its events are read


@dataclass(slots=True)
class AnswerRecord:
    """One answer, from the request to the last event; times are those of `time.perf_counter`, in seconds.

    - `task`: the task of Open WebUI that this is a reply to; empty for an answer to a question
    - `turn`: the turn after the last group of steps that ended; None before that, and for a task
    - `language`: that of the answer; empty until all steps have ended
    - `writing`: the time at which all steps had ended, and the events were read
    - `texts`, `sources`: what was sent so far; neither is logged
    - `calls`: the same object as in the turn
    - `cache`: whether the answer is a stored one; empty if none could be. `age`: that of a stored one, in seconds
    """

    assistant: str = ""
    stream: bool = False
    task: str = ""
    began: float = field(default_factory=time.perf_counter)
    turn: Turn | None = None
    language: str = ""
    writing: float | None = None
    first_text: float | None = None
    ended: float | None = None
    texts: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    done: Done | None = None
    error: Exception | None = None
    cache: Literal["", "hit", "miss"] = ""
    age: float | None = None

    def steps_ended(self, language: str) -> None:
        """Record that all steps have ended; the answer is in this language."""
        self.language, self.writing = language, time.perf_counter()

    def add(self, event: Event) -> None:
        """Take over what an event of the answer says; the last one ends the record."""
        if isinstance(event, Text):
            if self.first_text is None:
                self.first_text = time.perf_counter()
            self.texts.append(event.text)
        elif isinstance(event, Source):
            self.sources.append(event)
        elif isinstance(event, Done | Failure):
            self.ended = time.perf_counter()
            if isinstance(event, Done):
                self.done = event
            else:
                self.error = event.error

    @property
    def outcome(self) -> Outcome:
        """The outcome of the question; empty if it was rejected before any work, because of the client or of overload."""
        if self.error is not None:
            return "" if isinstance(self.error, RequestError | Overloaded) else "failed"
        if self.done is None:
            return "cancelled"
        if self.turn is not None and (self.turn.smalltalk or self.turn.choices):
            return "smalltalk" if self.turn.smalltalk else "clarified"
        return "refused" if self.done.refused else "extractive" if self.done.extractive else "written"

    @property
    def steps(self) -> Sequence[tuple[StepRecord, float]]:
        """The steps with their durations in milliseconds; that of the writer includes the whole answer."""
        if self.turn is None:
            return ()
        written = (self.ended - self.writing) * 1000 if self.ended and self.writing else 0.0
        return [(step, step.ms + (written if step.step == WRITER else 0.0)) for step in self.turn.trace]

    @property
    def failed_step(self) -> str:
        """The step that ended the answer with an error; empty if none did."""
        if self.error is None or self.outcome != "failed":
            return ""
        return getattr(self.error, "step", "") or (WRITER if self.writing else "")

    def fields(self) -> dict[str, Any]:
        """Returns the fields of a log line: no text of the question, and nothing that isn't known."""
        generation = getattr(self.turn, "generation", None)
        usage = self.calls.usage
        values = {
            "assistant": self.assistant,
            "task": self.task,
            "language": self.language,
            "outcome": "" if self.task else self.outcome,
            "extractive": bool(self.done and self.done.extractive),
            "refused": bool(self.done and self.done.refused),
            "first_text_ms": _ms(self.began, self.first_text),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "sources": len(self.sources),
            "evidence": self.evidence,
            "cache": self.cache,
            "generation": generation.info.id if generation else "",
            "step": self.failed_step,
        }
        return {name: value for name, value in values.items() if value not in ("", None)}

    @property
    def evidence(self) -> float | None:
        """The share of the question (0..1) that the best passage contains; None if no step has checked it."""
        return self.turn.evidence if self.turn else None


def _ms(began: float, ended: float | None) -> float | None:
    return None if ended is None else round((ended - began) * 1000, 1)
