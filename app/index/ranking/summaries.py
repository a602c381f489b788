"""Summaries of pages in the vector leg: a summary finds a page, and the page's chunks become candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.types import Candidate

PAGES = 20
"""The number of summaries per search: later pages wouldn't reach the hits."""


@dataclass(frozen=True, slots=True)
class SummaryHit:
    """A page found by its summary; `score` is a cosine."""

    url: str
    score: float


def pages_without_chunks(leg: Sequence[Candidate], pages: Sequence[SummaryHit], depth: int) -> list[str]:
    """The pages without a chunk in the leg whose score is high enough for the leg."""
    there = {candidate.url for candidate in leg}
    least = leg[-1].score if len(leg) >= depth else -1.0
    return [page.url for page in pages if page.url not in there and page.score > least]


def raised_to_summaries(leg: Sequence[Candidate], pages: Sequence[SummaryHit], depth: int) -> tuple[Candidate, ...]:
    """The leg with the scores of each page raised by the same amount, so that its best chunk has the summary's score.

    The order of the chunks within a page stays that of their own vectors.
    """
    best: dict[str, float] = {}
    for candidate in leg:
        best[candidate.url] = max(candidate.score, best.get(candidate.url, candidate.score))
    rise = {page.url: max(0.0, page.score - best[page.url]) for page in pages if page.url in best}
    moved = [candidate._replace(score=candidate.score + rise.get(candidate.url, 0.0)) for candidate in leg]
    return tuple(sorted(moved, key=lambda candidate: (-candidate.score, candidate.id))[:depth])


def best_of_each_page(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The first candidate of each page."""
    found: dict[str, Candidate] = {}
    for candidate in candidates:
        found.setdefault(candidate.url, candidate)
    return tuple(found.values())
