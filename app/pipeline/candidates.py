"""The candidates of a trace: all chunks that were found for a question, how each got its score, and what dropped it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from app.core.filters import Filters
from app.core.trace import Dropped, DropReason, LegPlace, TraceCandidate, TraceFusion
from app.core.turn import StepRecord, Turn
from app.core.types import Candidate, Chunk, Hit, Legs, Query
from app.index.ranking.explain import Cut, Explained, Explanation, explained
from app.pipeline.recording import Recorder
from app.pipeline.steps.relevance import TAIL

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
    """How the legs were merged (None if nothing was searched), and all candidates, the hits first."""
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
        filters={one.name: values for one in fields(Filters) if (values := getattr(query.filters, one.name))},
    )


def places(leg: Sequence[Candidate]) -> list[LegPlace]:
    """The candidates of one leg with their ranks."""
    return [LegPlace(one.id, rank, _rounded(one.score)) for rank, one in enumerate(leg, start=1)]


class _Table:
    """The rows by id, filled step by step."""

    def __init__(self, turn: Turn, recorder: Recorder) -> None:
        self._turn, self._recorder = turn, recorder
        self._rows: dict[str, _Row] = {}

    def add_ranked(self, explanation: Explanation, legs: Legs, query: Query) -> None:
        """Add the candidates of the fusion; those that it left out are dropped by the step that searched."""
        step = next((record.step for record in reversed(self._turn.trace) if "search" in record.changes), "retrieve")
        words, vectors = ({one.chunk: one for one in places(leg)} for leg in (legs.lexical, legs.vector))
        for one in explanation.candidates:
            row = self._row(one.candidate)
            row.ranked, row.words, row.vectors = one, words.get(row.id), vectors.get(row.id)
            row.dropped = Dropped(step, one.cut, _cut_text(one, query)) if one.cut else None
        for search in self._recorder.searches:
            for id_ in {one.id for leg in (search.legs.lexical, search.legs.vector) for one in leg} & self._rows.keys():
                if search.step not in self._rows[id_].found_by:
                    self._rows[id_].found_by.append(search.step)

    async def add_filtered(self, query: Query) -> None:
        """Add the best of what only the filters exclude."""
        if query.filters == Filters():
            return
        legs = await self._turn.generation.search(replace(query, filters=Filters()))
        found = zip((legs.lexical, legs.vector), ("words", "vectors"), strict=True)
        outside = [
            (place, name, one)
            for leg, name in found
            for place, one in zip(places(leg), leg, strict=True)
            if (one.id not in self._rows or self._rows[one.id].ranked is None) and _excluding(query.filters, one)
        ]
        for place, name, one in sorted(outside, key=lambda each: each[0].rank)[: 2 * MOST_FILTERED]:
            row = self._row(one)
            setattr(row, name, place)
            limits = ", ".join(_excluding(query.filters, one))
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
            left = before - now
            if record.step == "rerank":
                left |= self._reranked(hits) - now
            for id_ in left:
                self._rows[id_].dropped = self._dropped(record)
            before = now
        for place, hit in enumerate(self._turn.hits, start=1):
            self._row(hit.chunk).place = place

    def _reranked(self, hits: Sequence[Hit]) -> set[str]:
        """All that the reranker has scored, with the scores if the step uses them as they are."""
        call = next((one for one in self._recorder.calls if one.kind == "rerank" and one.scores), None)
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
