"""The trace of an answer, for engineers; it is made only for requests that ask for it."""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import fields, is_dataclass, replace
from typing import Any

from app.core.errors import AssistantError
from app.core.trace import (
    Dropped,
    DropReason,
    Trace,
    TraceCandidate,
    TraceEnd,
    TraceEvidence,
    TraceFusion,
    TracePassage,
    TraceStep,
)
from app.core.turn import Done, Events, Failure, StepRecord, Text, Turn
from app.core.types import Candidate, Chunk, Filters, Hit, Legs, Query
from app.index.ranking.fuse import Cut, Explained, explained, leg_weights
from app.pipeline.conversation import numbered
from app.pipeline.recording import Recorder, bounded, places
from app.pipeline.runner import Plan
from app.pipeline.steps.relevance import TAIL

LISTED = 10  # candidates of each leg in the fields of a step
LONGEST_TEXT = 300  # of a field of a step
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
                yield replace(event, trace=await _trace(turn, plan, recorder, event, first))
            else:
                yield event


async def _trace(turn: Turn, plan: Plan, recorder: Recorder, end: Done | Failure, first: float) -> Trace:
    """Makes the trace once all events were read."""
    now = recorder.now()
    fusion, rows, problem = None, list[TraceCandidate](), ""
    try:
        fusion, rows = await candidates(turn, recorder)
    except AssistantError as error:  # the answer is worth more than its trace
        problem = f"{type(error).__name__}: {error}"
    return Trace(
        question=turn.asked.text,
        language=turn.asked.language,
        generation=turn.generation.info.id if turn.generation else None,
        ms=now,
        first_text=recorder.ms(first) if first else None,
        steps=_steps(turn, plan, recorder, now),
        searches=[replace(search, texts=shown(search.texts)) for search in recorder.searches],
        fusion=fusion,
        candidates=rows,
        evidence=_evidence(turn),
        passages=_passages(turn),
        links=turn.citing.links if turn.citing else (),
        removed=turn.citing.removed if turn.citing else (),
        end=_end(end),
        problem=problem,
    )


def _steps(turn: Turn, plan: Plan, recorder: Recorder, now: float) -> list[TraceStep]:
    declared = {step.name: (group, step) for group, steps in enumerate(plan) for step in steps}
    known: dict[str, Any] = {"request": turn.request}
    steps = []
    for record in turn.trace:
        group, step = declared[record.step]
        calls = recorder.calls[record.step]
        for call in calls:
            call.end, call.reply = call.end or now, bounded(call.reply)
        steps.append(
            TraceStep(
                step=record.step,
                group=group,
                start=recorder.ms(record.began),
                end=now if record.step in WORKING_TO_THE_END else recorder.ms(record.began + record.ms / 1000),
                input=_values({name: known[name] for name in (*step.reads, *step.uses) if name in known}),
                output=_values(record.changes),
                calls=calls,
                error=record.error or next((call.error for call in calls if call.error), ""),
            )
        )
        known.update(record.changes)
    return steps


def _values(values: Mapping[str, Any]) -> Any:
    return shown({name: value for name, value in values.items() if name not in STREAMS})


def _evidence(turn: Turn) -> TraceEvidence | None:
    if (evidence := turn.evidence) is None:
        return None
    return TraceEvidence(_rounded(evidence.share), _rounded(evidence.needed), enough=evidence.share >= evidence.needed)


def _passages(turn: Turn) -> list[TracePassage]:
    return [
        TracePassage(
            number=number,
            url=passage.chunk.url,
            title=passage.chunk.title,
            language=passage.chunk.language,
            chunks=[hit.chunk.id for hit in passage.hits],
            text=numbered((passage,), first=number),
        )
        for number, passage in enumerate(turn.passages, start=1)
    ]


def _end(end: Done | Failure) -> TraceEnd:
    if isinstance(end, Failure):
        return TraceEnd(failure=f"{type(end.error).__name__}: {end.error}")
    return TraceEnd(
        end.finish_reason,
        end.extractive,
        end.refused,
        end.language,
        unsupported=end.unsupported,
        ending=end.ending,
        verbatim=end.verbatim,
    )


def shown(value: object) -> Any:
    """The value as JSON: long texts are cut, legs show their best candidates, passages their scores, vectors their length."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Hit):
        return _hit(value)
    if isinstance(value, Candidate):
        value = {"chunk": value.id, "url": value.url, "score": value.score}
    elif is_dataclass(value):
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


def _hit(hit: Hit) -> dict[str, Any]:
    scores = {name: getattr(hit, name) for name in ("lexical", "cosine", "fused", "boost", "rerank")}
    return {
        "chunk": hit.chunk.id,
        "url": hit.chunk.url,
        "language": hit.chunk.language,
        "title": hit.chunk.title,
        "found_in": hit.found_in,
        **{name: None if score is None else round(score, 4) for name, score in scores.items()},
    }


MOST_FILTERED = 20
"""Candidates that only the filters exclude; more of them say nothing new."""


async def candidates(turn: Turn, recorder: Recorder) -> tuple[TraceFusion | None, list[TraceCandidate]]:
    """Returns how the legs were merged (None if nothing was searched), and all candidates, the hits first."""
    table, fusion = _Table(turn, recorder), None
    if turn.search is not None:
        query, legs = turn.search.query, turn.search.legs
        fusion = _fusion(query, leg_weights(legs, query))
        table.add_ranked(await explained(turn.generation, legs, query), legs, query)
        await table.add_filtered(query)
    table.follow_steps()
    table.follow_passages()
    return fusion, await table.named()


def _fusion(query: Query, weights: tuple[float, float]) -> TraceFusion:
    return TraceFusion(
        fusion=query.fusion,
        words_weight=_rounded(query.lexical_weight),
        vector_weight=_rounded(query.vector_weight),
        words_weight_used=_rounded(weights[0]),
        vector_weight_used=_rounded(weights[1]),
        other_language=_rounded(query.of_another_language),
        language_offsets={language: _rounded(offset) for language, offset in query.language_offsets},
        depth=query.depth,
        top_k=query.limit,
        per_page=query.per_page,
        filters={field.name: values for field in fields(Filters) if (values := getattr(query.filters, field.name))},
    )


class _Table:
    """The rows by id, filled step by step."""

    def __init__(self, turn: Turn, recorder: Recorder) -> None:
        self._turn, self._recorder = turn, recorder
        self._rows: dict[str, TraceCandidate] = {}
        self._ranked: set[str] = set()

    def add_ranked(self, candidates: Sequence[Explained], legs: Legs, query: Query) -> None:
        """Add the candidates of the fusion; those that it left out are dropped by the step that searched."""
        step = next((record.step for record in reversed(self._turn.trace) if "search" in record.changes), "retrieve")
        words, vectors = ({place.chunk: place for place in places(leg)} for leg in (legs.lexical, legs.vector))
        found_by: dict[str, dict[str, None]] = defaultdict(dict)
        for search in self._recorder.searches:
            for place in (*search.words, *search.vectors):
                found_by[place.chunk][search.step] = None
        for ranked in candidates:
            row = self._row(ranked.candidate)
            self._ranked.add(row.chunk)
            row.found_by = list(found_by[row.chunk])
            row.words, row.vectors = words.get(row.chunk), vectors.get(row.chunk)
            row.words_share, row.vectors_share = _rounded(ranked.words), _rounded(ranked.vectors)
            row.language_factor, row.boost = _rounded(ranked.language_factor), _rounded(ranked.boost)
            row.fused, row.found_in = _rounded(ranked.fused), ranked.found_in
            row.dropped = Dropped(step, ranked.cut, _cut_text(ranked, query)) if ranked.cut else None

    async def add_filtered(self, query: Query) -> None:
        """Add the best of what only the filters exclude."""
        if query.filters == Filters():
            return
        legs = await self._turn.generation.search(replace(query, filters=Filters()))
        named_legs = zip((legs.lexical, legs.vector), ("words", "vectors"), strict=True)
        outside = [
            (place, name, candidate)
            for leg, name in named_legs
            for place, candidate in zip(places(leg), leg, strict=True)
            if candidate.id not in self._ranked and _excluding(query.filters, candidate)
        ]
        for place, name, candidate in sorted(outside, key=lambda each: each[0].rank)[: 2 * MOST_FILTERED]:
            row = self._row(candidate)
            setattr(row, name, place)
            limits = ", ".join(_excluding(query.filters, candidate))
            row.dropped = Dropped(
                "retrieve", "filters", f"outside of the filters: {limits}; ranks are those without filters"
            )

    def follow_steps(self) -> None:
        """Go through the hits of all steps: which came, which stayed, and which step dropped the others."""
        before: set[str] = set()
        for record in self._turn.trace:
            if "hits" not in record.changes:
                continue
            hits: Sequence[Hit] = record.changes["hits"]
            for hit in hits:
                row = self._row(hit.chunk)
                row.rerank, row.dropped = None if hit.rerank is None else _rounded(hit.rerank), None
                if row.chunk not in self._ranked:
                    row.fused = _rounded(hit.fused)
                    row.found_by = list(dict.fromkeys((*row.found_by, record.step)))
            now = {hit.chunk.id for hit in hits}
            dropped = before - now
            if record.step == "rerank":
                dropped |= self._reranked() - now
            for id_ in dropped:
                self._rows[id_].dropped = self._dropped(record)
            before = now
        for place, hit in enumerate(self._turn.hits, start=1):
            self._row(hit.chunk).place = place

    def _reranked(self) -> set[str]:
        """The ids of all that the reranker has scored, also of what the ranking alone would have left out."""
        for hit in self._recorder.reranked:
            self._row(hit.chunk).rerank = _rounded(hit.score)
        return {hit.chunk.id for hit in self._recorder.reranked}

    def _dropped(self, record: StepRecord) -> Dropped:
        hits, evidence = record.changes["hits"], record.changes.get("evidence")
        searched_again = any(search.step == record.step for search in self._recorder.searches)
        reason: DropReason = "step"
        detail = f"the step {record.step} left it out"
        if evidence and not hits:
            reason = "evidence"
            detail = f"the best passage has {evidence.share:.2f} of the question, and {evidence.needed:.2f} is needed"
        elif evidence and not searched_again:
            reason = "weak"
            detail = f"its score is below {TAIL * evidence.share:.2f} of the best one ({TAIL:g} of the evidence)"
        elif searched_again:
            detail = f"the step {record.step} searched again and found other chunks"
        elif record.step == "rerank":
            reason, detail = "rerank", f"not among the best {len(hits)} after reranking"
        elif record.step == "overview":
            reason, detail = "overview", "the question is about the documentation as a whole: its top pages are read"
        return Dropped(record.step, reason, detail)

    def follow_passages(self) -> None:
        """Note which passage has each hit; a hit without one was left out for lack of room, or because another has its text."""
        if not self._turn.passages:
            return
        for number, passage in enumerate(self._turn.passages, start=1):
            for hit in passage.hits:
                self._row(hit.chunk).passage = number
        texts = [passage.chunk.text for passage in self._turn.passages]
        for hit in self._turn.hits:
            row = self._row(hit.chunk)
            if row.passage is None:
                has = next((n for n, text in enumerate(texts, start=1) if _holds(text, hit.chunk.text)), 0)
                row.dropped = (
                    Dropped("synthesize", "duplicate", f"passage {has} has its text")
                    if has
                    else Dropped("synthesize", "passage_budget", "no room is left within passage_tokens")
                )

    async def named(self) -> list[TraceCandidate]:
        """The rows with the titles of their chunks, the hits first."""
        for chunk in (
            *await self._turn.generation.fetch(list(self._rows)),
            *(hit.chunk for record in self._turn.trace for hit in record.changes.get("hits", ())),
        ):
            row = self._row(chunk)
            row.title, row.section = chunk.title, chunk.heading_path[-1] if chunk.heading_path else ""
        return sorted(
            self._rows.values(),
            key=lambda row: (row.place or math.inf, math.inf if row.fused is None else -row.fused, row.chunk),
        )

    def _row(self, one: Candidate | Chunk) -> TraceCandidate:
        return self._rows.setdefault(one.id, TraceCandidate(one.id, one.url, one.language))


def _cut_text(one: Explained, query: Query) -> str:
    texts: Mapping[Cut, str] = {
        "version": "another version of its page is shown",
        "translation": "a translation of its page is shown instead",
        "language": f"in another language than the question: without the factor {one.language_factor:.2f} it would be a hit",
        "per_page": f"{query.per_page} chunks of its page rank higher (per_page)",
        "top_k": f"{query.limit} chunks rank higher (top_k)",
    }
    return texts[one.cut]


def _excluding(filters: Filters, one: Candidate) -> list[str]:
    """The filters that don't admit the candidate."""
    alone = {part.name: Filters(**{part.name: getattr(filters, part.name)}) for part in fields(Filters)}
    return [
        f"{name} = {' '.join(getattr(filters, name))}"
        for name, limit in alone.items()
        if not limit.admits(one.url, one.collection, {one.language}, one.versions)
    ]


def _holds(text: str, part: str) -> bool:
    lines = [line.strip() for line in part.splitlines() if line.strip()]
    return bool(lines) and sum(line in text for line in lines) > len(lines) / 2


def _rounded(number: float) -> float:
    return round(number, 4)
