"""Merges lists of candidates that are chunks in several searches: by text and by questions, or of several wordings."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.types import Candidate


def nearest(*found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Each candidate once, with its best score, best first."""
    best: dict[str, Candidate] = {}
    for candidates in found:
        for candidate in candidates:
            if candidate.id not in best or candidate.score > best[candidate.id].score:
                best[candidate.id] = candidate
    return tuple(sorted(best.values(), key=lambda candidate: (-candidate.score, candidate.id)))
