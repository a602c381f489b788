"""The trace of an answer, for engineers; it is made only for requests that ask for it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from app.core.errors import AssistantError
from app.core.trace import (
    Dropped,
    DropReason,
    LegPlace,
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
from app.core.turn import Done, Events, Failure, Message, StepRecord, Text, Turn
from app.core.types import Candidate, Chunk, Filters, Hit, Legs, Query
from app.index.ranking.fuse import Cut, Explained, Explanation, explained
from app.pipeline.conversation import numbered
from app.pipeline.recording import CallRecord, Recorder, SearchRecord
from app.pipeline.runner import Plan
from app.pipeline.steps.relevance import TAIL

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
            inputs_of = {
                name: known[name] for name in inputs.get(record.step, ()) if name in known and name not in STREAMS
            }
            calls = [self._call(call, now) for call in self.recorder.calls if call.step == record.step]
            steps.append(
                TraceStep(
                    step=record.step,
                    group=span.group,
                    start=ms(span.began),
                    end=ms(now if record.step in WORKING_TO_THE_END else span.ended),
                    input=shown(inputs_of),
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
    share, needed = round(turn.evidence, 4), round(turn.evidence_needed, 4)
    return TraceEvidence(share, needed, enough=turn.evidence >= turn.evidence_needed)


def _passages(turn: Turn) -> list[TracePassage]:
    return [
        TracePassage(
            number=number,
            url=passage.chunk.url,
            title=passage.chunk.title,
            language=passage.chunk.language,
            chunks=[hit.chunk.id for hit in passage.hits],
            text=numbered((passage,), turn.condensed, first=number),
        )
        for number, passage in enumerate(turn.passages, start=1)
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


MOST_FILTERED = 20
"""Candidates that only the filters exclude; more of them say nothing new."""


@dataclass(slots=True)
class _Row:
    """A candidate, while the steps are gone through."""

    id: str
    url: str
    language: str
    ranked: Explained | None = None
    hit: Hit | None = None
    rerank: float | None = None
    found_by: list[str] = field(default_factory=list)
    words: LegPlace | None = None
    vectors: LegPlace | None = None
    place: int | None = None
    passage: int | None = None
    dropped: Dropped | None = None


async def candidates(turn: Turn, recorder: Recorder) -> tuple[TraceFusion | None, list[TraceCandidate]]:
    """Returns how the legs were merged (None if nothing was searched), and all candidates, the hits first."""
    table, fusion = _Table(turn, recorder), None
    query, legs = turn.search, turn.legs
    if query is not None and legs is not None:
        explanation = await explained(turn.generation, legs, query)
        fusion = _fusion(query, explanation)
        table.add_ranked(explanation, legs, query)
        await table.add_filtered(query)
    table.follow_steps()
    table.follow_passages()
    return fusion, await table.rows()


def _fusion(query: Query, explanation: Explanation) -> TraceFusion:
    return TraceFusion(
        fusion=query.fusion,
        words_weight=_rounded(query.lexical_weight),
        vector_weight=_rounded(query.vector_weight),
        words_weight_used=_rounded(explanation.words_weight),
        vector_weight_used=_rounded(explanation.vector_weight),
        other_language=_rounded(query.of_another_language),
        language_offsets={language: _rounded(offset) for language, offset in query.language_offsets},
        depth=query.depth,
        top_k=query.limit,
        per_page=query.per_page,
        filters={field.name: values for field in fields(Filters) if (values := getattr(query.filters, field.name))},
    )


def places(leg: Sequence[Candidate]) -> list[LegPlace]:
    """The candidates of one leg with their ranks."""
    return [LegPlace(candidate.id, rank, _rounded(candidate.score)) for rank, candidate in enumerate(leg, start=1)]


class _Table:
    """The rows by id, filled step by step."""

    def __init__(self, turn: Turn, recorder: Recorder) -> None:
        self._turn, self._recorder = turn, recorder
        self._rows: dict[str, _Row] = {}

    def add_ranked(self, explanation: Explanation, legs: Legs, query: Query) -> None:
        """Add the candidates of the fusion; those that it left out are dropped by the step that searched."""
        step = next((record.step for record in reversed(self._turn.trace) if "search" in record.changes), "retrieve")
        words, vectors = ({place.chunk: place for place in places(leg)} for leg in (legs.lexical, legs.vector))
        for ranked in explanation.candidates:
            row = self._row(ranked.candidate)
            row.ranked, row.words, row.vectors = ranked, words.get(row.id), vectors.get(row.id)
            row.dropped = Dropped(step, ranked.cut, _cut_text(ranked, query)) if ranked.cut else None
        for search in self._recorder.searches:
            for id_ in {
                candidate.id for leg in (search.legs.lexical, search.legs.vector) for candidate in leg
            } & self._rows.keys():
                if search.step not in self._rows[id_].found_by:
                    self._rows[id_].found_by.append(search.step)

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
            if (candidate.id not in self._rows or self._rows[candidate.id].ranked is None)
            and _excluding(query.filters, candidate)
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
                row.hit, row.rerank, row.dropped = hit, hit.rerank, None
                if not row.ranked and record.step not in row.found_by:
                    row.found_by.append(record.step)
            now = {hit.chunk.id for hit in hits}
            dropped = before - now
            if record.step == "rerank":
                dropped |= self._reranked(hits) - now
            for id_ in dropped:
                self._rows[id_].dropped = self._dropped(record)
            before = now
        for place, hit in enumerate(self._turn.hits, start=1):
            self._row(hit.chunk).place = place

    def _reranked(self, hits: Sequence[Hit]) -> set[str]:
        """All that the reranker has scored, with the scores if the step uses them as they are."""
        call = next(
            (recorded for recorded in self._recorder.calls if recorded.kind == "rerank" and recorded.scores), None
        )
        raw = dict(zip(call.texts[1:], call.scores, strict=False)) if call else {}
        wide = self._recorder.fetched.get("rerank", ())
        for chunk in wide:
            row = self._row(chunk)
            score = raw.get(chunk.embedded_text)
            same = all(math.isclose(raw.get(hit.chunk.embedded_text, -1), hit.rerank or 0) for hit in hits)
            row.rerank = score if same else row.rerank
        return {chunk.id for chunk in wide}

    def _dropped(self, record: StepRecord) -> Dropped:
        changes, hits = record.changes, record.changes["hits"]
        searched_again = any(search.step == record.step for search in self._recorder.searches)
        reason: DropReason = "step"
        detail = f"the step {record.step} left it out"
        if "evidence" in changes and not hits:
            reason = "evidence"
            detail = f"the best passage has {changes['evidence']:.2f} of the question, and {changes['evidence_needed']:.2f} is needed"
        elif "evidence" in changes and not searched_again:
            reason = "weak"
            detail = f"its score is below {TAIL * changes['evidence']:.2f} of the best one ({TAIL:g} of the evidence)"
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

    async def rows(self) -> list[TraceCandidate]:
        """The rows for the trace."""
        chunks = {chunk.id: chunk for chunk in await self._turn.generation.fetch(list(self._rows))}
        order = sorted(self._rows.values(), key=_rank)
        return [_shown(row, row.hit.chunk if row.hit else chunks.get(row.id)) for row in order]

    def _row(self, one: Candidate | Chunk) -> _Row:
        return self._rows.setdefault(one.id, _Row(one.id, one.url, one.language))


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


def _rank(row: _Row) -> tuple[float, float, str]:
    score = row.ranked.fused if row.ranked else row.hit.fused if row.hit else -1.0
    return row.place or math.inf, -score, row.id


def _shown(row: _Row, chunk: Chunk | None) -> TraceCandidate:
    ranked, hit = row.ranked, row.hit
    fused = ranked.fused if ranked else hit.fused if hit else None
    return TraceCandidate(
        chunk=row.id,
        url=row.url,
        title=chunk.title if chunk else "",
        section=chunk.heading_path[-1] if chunk and chunk.heading_path else "",
        language=row.language,
        found_by=row.found_by,
        words=row.words,
        vectors=row.vectors,
        words_share=_rounded(ranked.words) if ranked else 0.0,
        vectors_share=_rounded(ranked.vectors) if ranked else 0.0,
        language_factor=_rounded(ranked.language_factor) if ranked else 1.0,
        boost=_rounded(ranked.boost) if ranked else 1.0,
        fused=None if fused is None else _rounded(fused),
        rerank=None if row.rerank is None else _rounded(row.rerank),
        found_in=ranked.found_in if ranked else "",
        place=row.place,
        passage=row.passage,
        dropped=row.dropped,
    )


def _rounded(number: float) -> float:
    return round(number, 4)
