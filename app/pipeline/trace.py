"""The trace of an answer, for operators; it is built only for requests that ask for it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from app.core.turn import Call, Done, Events, Failure, StepRecord, Text, Turn
from app.core.types import Candidate, Hit
from app.pipeline.runner import Plan

CANDIDATES = 10  # of each leg
LONGEST_TEXT = 300
STREAMS = {"generation", "events"}  # fields that aren't values


async def traced(events: Events, turn: Turn, plan: Plan) -> Events:
    """The events; the last one has the trace of all steps, with the time that writing the answer took."""
    started = time.perf_counter()
    clock = _Clock(started)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Text) and not clock.first:
                clock.first = time.perf_counter()
            if isinstance(event, Done | Failure):
                yield replace(event, trace=tuple(_steps(turn, plan, clock, event)))
            else:
                yield event


@dataclass(slots=True)
class _Clock:
    started: float
    first: float = 0.0

    def ms(self, then: float) -> float:
        return round((then - self.started) * 1000, 1)


def _steps(turn: Turn, plan: Plan, clock: _Clock, end: Done | Failure) -> Sequence[Mapping[str, Any]]:
    inputs = {step.name: (*step.reads, *step.uses) for group in plan for step in group}
    known: dict[str, Any] = {"request": turn.request}
    steps = []
    for record in turn.trace:
        given = {name: known[name] for name in inputs.get(record.step, ()) if name in known and name not in STREAMS}
        steps.append(_step(record, given, [call for call in turn.calls.ended if call.step == record.step]))
        known.update(record.changes)
    writer = next((step for step in steps if step["step"] == "synthesize"), None)
    if writer is not None:
        writer["ms"] = clock.ms(time.perf_counter())
        writer["first_text_ms"] = clock.ms(clock.first) if clock.first else None
        writer["output"] = _end(end)
    citer = next((step for step in steps if step["step"] == "cite"), None)
    if citer is not None and turn.citing is not None:  # complete once all events were read
        citer["output"] = _shown(turn.citing)
    return steps


def _step(record: StepRecord, given: Mapping[str, Any], calls: Sequence[Call]) -> dict[str, Any]:
    return {
        "step": record.step,
        "ms": round(record.ms, 1),
        "input": _shown(given),
        "output": _shown({name: value for name, value in record.changes.items() if name not in STREAMS}),
        "calls": len(calls),
        "call_ms": [round(call.ms, 1) for call in calls],
        "prompt_tokens": sum(call.usage.prompt_tokens for call in calls),
        "completion_tokens": sum(call.usage.completion_tokens for call in calls),
        "error": record.error or next((call.error for call in calls if call.error), ""),
    }


def _end(end: Done | Failure) -> dict[str, Any]:
    if isinstance(end, Failure):
        return {"failure": f"{type(end.error).__name__}: {end.error}"}
    return {
        "finish_reason": end.finish_reason,
        "extractive": end.extractive,
        "refused": end.refused,
        "language": end.language,
    }


def _shown(value: object) -> Any:
    """The value as JSON: long texts are cut, legs show their best candidates, passages their scores, vectors their length."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Hit | Candidate):
        return _hit(value) if isinstance(value, Hit) else _candidate(value)
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _shown(item) for key, item in value.items()}
    return _listed(value) if isinstance(value, Sequence) else value


def _listed(values: Sequence[object]) -> Any:
    if values and isinstance(values[0], float):
        return f"{len(values)} numbers"
    return [_shown(value) for value in (values[:CANDIDATES] if values and isinstance(values[0], Candidate) else values)]


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {"chunk": candidate.id, "url": candidate.url, "score": round(candidate.score, 4)}


def _hit(hit: Hit) -> dict[str, Any]:
    scores = {
        "lexical": hit.lexical,
        "cosine": hit.cosine,
        "fused": hit.fused,
        "boost": hit.boost,
        "rerank": hit.rerank,
    }
    return {
        "chunk": hit.chunk.id,
        "url": hit.chunk.url,
        "language": hit.chunk.language,
        "title": hit.chunk.title,
        "found_in": hit.found_in,
        **{name: None if score is None else round(score, 4) for name, score in scores.items()},
    }
