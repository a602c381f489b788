"""The trace of an answer, for engineers; it is made only for requests that ask for it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from app.core.errors import AssistantError
from app.core.trace import (
    Trace,
    TraceCall,
    TraceCandidate,
    TraceEnd,
    TraceEvidence,
    TraceFusion,
    TracePassage,
    TraceSearch,
    TraceStep,
)
from app.core.turn import Done, Events, Failure, Message, Text, Turn
from app.core.types import Candidate, Hit
from app.pipeline.candidates import candidates, places
from app.pipeline.reading import numbered
from app.pipeline.recording import CallRecord, Recorder, SearchRecord
from app.pipeline.runner import Plan

LISTED = 10  # candidates of each leg in the fields of a step
LONGEST_TEXT = 300  # of a field of a step
LONGEST_MESSAGE = 200_000  # more than any context window has for one
CUT = " … (cut)"
STREAMS = {"generation", "events"}  # fields that aren't values
WORKING_TO_THE_END = {"synthesize", "cite"}


async def traced(events: Events, turn: Turn, plan: Plan, recorder: Recorder) -> Events:
    """The events; the last one has the trace."""
    first = 0.0
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Text):
                first = first or time.perf_counter()
            if isinstance(event, Done | Failure):
                yield replace(event, trace=await _Maker(turn, plan, recorder).trace(event, first))
            else:
                yield event


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the trace once all events were read."""

    turn: Turn
    plan: Plan
    recorder: Recorder

    async def trace(self, end: Done | Failure, first: float) -> Trace:
        now, turn, ms = time.perf_counter(), self.turn, self.recorder.ms
        fusion, rows, problem = await self._candidates()
        citing = turn.citing
        return Trace(
            question=turn.question,
            language=turn.language,
            generation=turn.generation.info.id if turn.generation else None,
            ms=ms(now),
            first_text=ms(first) if first else None,
            steps=self._steps(now),
            searches=[self._search(search) for search in self.recorder.searches],
            fusion=fusion,
            candidates=rows,
            evidence=_evidence(turn),
            passages=_passages(turn),
            links=citing.links if citing else (),
            removed=citing.removed if citing else (),
            end=_end(end),
            problem=problem,
        )

    async def _candidates(self) -> tuple[TraceFusion | None, Sequence[TraceCandidate], str]:
        try:
            return *await candidates(self.turn, self.recorder), ""
        except AssistantError as error:  # the answer is worth more than its trace
            return None, (), f"{type(error).__name__}: {error}"

    def _steps(self, now: float) -> list[TraceStep]:
        inputs = {step.name: (*step.reads, *step.uses) for group in self.plan for step in group}
        spans = {span.step: span for span in self.recorder.steps}
        known: dict[str, Any] = {"request": self.turn.request}
        steps = []
        for record in self.turn.trace:
            span, ms = spans[record.step], self.recorder.ms
            given = {name: known[name] for name in inputs.get(record.step, ()) if name in known and name not in STREAMS}
            calls = [self._call(call, now) for call in self.recorder.calls if call.step == record.step]
            steps.append(
                TraceStep(
                    step=record.step,
                    group=span.group,
                    start=ms(span.began),
                    end=ms(now if record.step in WORKING_TO_THE_END else span.ended),
                    input=shown(given),
                    output=shown({name: value for name, value in record.changes.items() if name not in STREAMS}),
                    calls=calls,
                    error=record.error or next((call.error for call in calls if call.error), ""),
                )
            )
            known.update(record.changes)
        return steps

    def _call(self, call: CallRecord, now: float) -> TraceCall:
        ms = self.recorder.ms
        return TraceCall(
            kind=call.kind,
            model=call.model,
            start=ms(call.began),
            end=ms(call.ended or now),
            first_text=ms(call.first) if call.first else None,
            prompt_tokens=call.usage.prompt_tokens,
            completion_tokens=call.usage.completion_tokens,
            error=call.error,
            temperature=call.options.temperature,
            max_tokens=call.options.max_tokens,
            messages=[Message(message.role, _bounded(message.content)) for message in call.messages],
            texts=[_bounded(text) for text in call.texts],
            reply=_bounded("".join(call.reply)),
        )

    def _search(self, search: SearchRecord) -> TraceSearch:
        return TraceSearch(
            step=search.step,
            start=self.recorder.ms(search.began),
            end=self.recorder.ms(search.ended),
            texts=[shown(text) for text in search.query.texts],
            vector=search.query.vector is not None,
            words=places(search.legs.lexical),
            vectors=places(search.legs.vector),
        )


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + CUT


def _evidence(turn: Turn) -> TraceEvidence | None:
    if turn.evidence is None:
        return None
    found, needed = round(turn.evidence, 4), round(turn.evidence_needed, 4)
    return TraceEvidence(found, needed, enough=turn.evidence >= turn.evidence_needed)


def _passages(turn: Turn) -> list[TracePassage]:
    return [
        TracePassage(
            number=number,
            url=one.chunk.url,
            title=one.chunk.title,
            language=one.chunk.language,
            chunks=[hit.chunk.id for hit in one.hits],
            text=numbered((one,), turn.condensed, first=number),
        )
        for number, one in enumerate(turn.passages, start=1)
    ]


def _end(end: Done | Failure) -> TraceEnd:
    if isinstance(end, Failure):
        return TraceEnd(failure=f"{type(end.error).__name__}: {end.error}")
    return TraceEnd(end.finish_reason, end.extractive, end.refused, end.language)


def shown(value: object) -> Any:
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
        return {str(key): shown(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return _listed(value)
    return value if value is None or isinstance(value, bool | int) else shown(repr(value))  # of a project's step


def _listed(values: Sequence[object]) -> Any:
    if values and isinstance(values[0], float):
        return f"{len(values)} numbers"
    return [shown(value) for value in (values[:LISTED] if values and isinstance(values[0], Candidate) else values)]


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
