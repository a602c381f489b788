"""What tuning is worth on questions that it hasn't seen: chosen on one half, judged on the other, then swapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.errors import EvaluationError
from eval.measure.metrics import Estimate, intervals
from eval.measure.tune import PLAIN, Candidate, Searched, best_of, candidates, reciprocal_ranks
from eval.questions.cases import HALVES
from eval.questions.documents import Documents


@dataclass(frozen=True, slots=True)
class Swapped:
    """One way round: what was chosen per question language on the half `chosen_on`, judged on the other one.

    Gains are the mean of languages, drawn by page: `over_plain` over reciprocal rank fusion without any preference for
    a language, `over_now` over the settings in force. `worst` is the language and variant that gains least over plain.
    """

    chosen_on: str
    best: dict[str, Candidate]
    n: int
    over_plain: Estimate
    over_now: Estimate
    worst: tuple[str, str, float]


def halves(searched: Sequence[Searched], documents: Documents, k: int) -> tuple[Swapped, Swapped]:
    """Both ways round, on the questions whose page exists in their language. Raises `EvaluationError` for too few."""
    own = [one for one in searched if not one.case.cross]
    tried = candidates()
    table = np.array([reciprocal_ranks(own, documents, k, candidate) for candidate in tried])
    plain, now = reciprocal_ranks(own, documents, k, PLAIN), reciprocal_ranks(own, documents, k)
    first, second = (
        _judged(name, own, table, tried, (plain, now), np.arange(len(own)) % 2 == odd)
        for odd, name in enumerate(HALVES)
    )
    return first, second


def _judged(
    name: str,
    own: Sequence[Searched],
    table: NDArray[np.float64],
    tried: Sequence[Candidate],
    before: tuple[NDArray[np.float64], NDArray[np.float64]],
    seen: NDArray[np.bool_],
) -> Swapped:
    language = np.array([one.query.language for one in own])
    plain, now = before
    had, best = now.copy(), dict[str, Candidate]()
    for code in sorted(set(language)):
        of_it = language == code
        if not (of_it & seen).any() or not (of_it & ~seen).any():
            raise EvaluationError(
                f"There are too few questions in {code} to choose on one half and judge on the other."
            )
        number = best_of(table[:, of_it & seen].mean(axis=1), tried)
        best[code], had[of_it] = tried[number], table[number, of_it]
    groups = [np.flatnonzero((language == code) & ~seen) for code in best]
    pages = [[own[i].case.doc for i in map(int, group)] for group in groups]
    over_plain, over_now = (
        intervals([(had - other)[group][:, None] for group in groups], pages)[0] for other in (plain, now)
    )
    cells = {(one.query.language, one.case.variant) for one, was in zip(own, seen, strict=True) if not was}
    gains = [(code, variant, _cell(own, had - plain, ~seen, code, variant)) for code, variant in sorted(cells)]
    worst = min(gains, key=lambda cell: cell[2])
    return Swapped(name, best, int((~seen).sum()), over_plain, over_now, worst)


def _cell(
    own: Sequence[Searched], gain: NDArray[np.float64], judged: NDArray[np.bool_], code: str, variant: str
) -> float:
    inside = [
        i for i in map(int, np.flatnonzero(judged)) if (own[i].query.language, own[i].case.variant) == (code, variant)
    ]
    return float(gain[inside].mean())
