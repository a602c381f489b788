"""Summaries of pages in the vector leg: they find pages, and the pages' own chunks answer. Pure, for every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.types import Candidate

PAGES = 20
"""Summaries that one search brings: pages beyond the first few don't reach the hits."""


@dataclass(frozen=True, slots=True)
class SummaryHit:
    """A page as its summary sees it; `score` is a cosine."""

    url: str
    score: float


def pages_without_chunks(leg: Sequence[Candidate], pages: Sequence[SummaryHit], depth: int) -> list[str]:
    """The pages that the leg has no chunk of, where one would have a place in it."""
    there = {candidate.url for candidate in leg}
    least = leg[-1].score if len(leg) >= depth else -1.0
    return [page.url for page in pages if page.url not in there and page.score > least]


def raised_to_summaries(leg: Sequence[Candidate], pages: Sequence[SummaryHit], depth: int) -> tuple[Candidate, ...]:
    """The leg with each page's chunks so much higher that its best one has the score of its summary, best first.

    A page moves as a whole: which of its chunks is the best is for their own vectors to say, never for the summary.
    """
    best: dict[str, float] = {}
    for candidate in leg:
        best[candidate.url] = max(candidate.score, best.get(candidate.url, candidate.score))
    rise = {page.url: max(0.0, page.score - best[page.url]) for page in pages if page.url in best}
    moved = [replace(candidate, score=candidate.score + rise.get(candidate.url, 0.0)) for candidate in leg]
    return tuple(sorted(moved, key=lambda candidate: (-candidate.score, candidate.id))[:depth])


def best_of_each_page(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The first candidate of each page."""
    found: dict[str, Candidate] = {}
    for candidate in candidates:
        found.setdefault(candidate.url, candidate)
    return tuple(found.values())
