"""Several searches of one generation as one."""

from __future__ import annotations

from collections.abc import Iterable

from app.core.types import Candidate, Legs


def joined(*searches: Legs | None) -> Legs:
    """Every candidate once, with its best score in each leg, best first; None is a search that wasn't made."""
    made = [legs for legs in searches if legs is not None]
    if len(made) == 1:
        return made[0]
    return Legs(
        _best(candidate for legs in made for candidate in legs.lexical),
        _best(candidate for legs in made for candidate in legs.vector),
    )


def _best(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.id not in best or candidate.score > best[candidate.id].score:
            best[candidate.id] = candidate
    return tuple(sorted(best.values(), key=lambda candidate: (-candidate.score, candidate.id)))
