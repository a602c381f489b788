"""Weights and boosts searched by cross-validation: each page's questions are judged by what other pages' taught.

The legs of every question are searched once; a candidate only fuses them anew, so hundreds cost seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.store.fuse import fuse
from app.core.types import Fusion, Legs, Query
from eval.errors import EvaluationError
from eval.measure.compare import enough_to_judge
from eval.measure.metrics import Estimate, intervals, score
from eval.questions.cases import Case
from eval.questions.documents import Documents

VECTOR_WEIGHTS = tuple(round(0.05 * step, 2) for step in range(21))
OTHER_LANGUAGE = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 1.0)
FOLDS = 5
SEED = 7
LEAST_GAIN = 0.005
NEAR_WEIGHTS, NEAR_FACTORS = 2, 1  # steps of the grid that a candidate is judged together with


@dataclass(frozen=True, slots=True)
class Searched:
    """One question with both legs as they were found, and the query that they were fused by."""

    case: Case
    legs: Legs
    query: Query


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings of the fusion: share of the vector leg, factor on other languages, and kind."""

    vector_weight: float
    other_language: float
    fusion: Fusion = "weighted"

    def query(self, query: Query) -> Query:
        """The query with these settings."""
        return replace(
            query,
            lexical_weight=1 - self.vector_weight,
            vector_weight=self.vector_weight,
            other_language=self.other_language,
            fusion=self.fusion,
        )


PLAIN = Candidate(0.5, 1.0, "rrf")  # what one has without tuning: ranks fused, no preference for a language


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best candidate of one question language, and what it gains on questions it wasn't chosen by.

    `gain` is the cross-validated difference to the settings in force, drawn by page; `flattered` is the gain on the very
    questions it was chosen by. `accepted`: the gain is outside the noise and worth a change.
    """

    language: str
    n: int
    best: Candidate
    before: float
    gain: Estimate
    flattered: float
    accepted: bool


def candidates() -> tuple[Candidate, ...]:
    """All that are tried."""
    weighted = [Candidate(weight, other) for weight, other in product(VECTOR_WEIGHTS, OTHER_LANGUAGE)]
    return (*weighted, *(Candidate(0.5, other, "rrf") for other in OTHER_LANGUAGE))


def tune(
    searched: Sequence[Searched], documents: Documents, k: int, progress: Callable[[int, int], None] | None = None
) -> tuple[Tuned, ...]:
    """The best settings for each question language, with an honest gain. Raises `EvaluationError` for too few pages.

    Questions whose page is in another language have no say: words can't find it, so they'd tune for the vectors alone.
    """
    tried = candidates()
    found = []
    searched = [one for one in searched if not one.case.cross]
    languages = sorted({one.query.language for one in searched})
    for position, language in enumerate(languages):
        own = [one for one in searched if one.query.language == language]
        now = reciprocal_ranks(own, documents, k)
        table = np.empty((len(tried), len(own)))
        for i, candidate in enumerate(tried):
            table[i] = reciprocal_ranks(own, documents, k, candidate)
            if progress:
                progress(position * len(tried) + i + 1, len(languages) * len(tried))
        found.append(_tuned(language, own, now, table, tried))
    return tuple(found)


def reciprocal_ranks(
    searched: Sequence[Searched], documents: Documents, k: int, candidate: Candidate | None = None
) -> NDArray[np.float64]:
    """Of the first right page of each question, 0 below k; with the candidate's settings or with those in force."""
    return np.array(
        [_rr(one, candidate.query(one.query) if candidate else one.query, documents, k) for one in searched]
    )


def best_of(means: NDArray[np.float64], tried: Sequence[Candidate]) -> int:
    """The number of the candidate that does best together with its neighbours.

    The best of 154 is best by chance as well; one amid good ones stays good on other questions.
    """
    all_ = tuple(tried)
    return int(np.argmax([means[_near(one, all_)].mean() for one in tried]))


@cache
def _near(one: Candidate, tried: tuple[Candidate, ...]) -> list[int]:
    def steps(values: Sequence[float], a: float, b: float) -> int:
        return abs(values.index(a) - values.index(b))

    return [
        number
        for number, other in enumerate(tried)
        if other.fusion == one.fusion
        and steps(OTHER_LANGUAGE, one.other_language, other.other_language) <= NEAR_FACTORS
        and (one.fusion == "rrf" or steps(VECTOR_WEIGHTS, one.vector_weight, other.vector_weight) <= NEAR_WEIGHTS)
    ]


def settings_of(tuned: Sequence[Tuned]) -> dict[str, Any]:
    """The accepted shares as `DOCS_VECTOR_WEIGHT` takes them, by language."""
    return {one.language: one.best.vector_weight for one in tuned if one.accepted and one.best.fusion == "weighted"}


def _tuned(
    language: str,
    searched: Sequence[Searched],
    now: NDArray[np.float64],
    table: NDArray[np.float64],
    tried: Sequence[Candidate],
) -> Tuned:
    pages = [one.case.doc for one in searched]
    folds = _folds(pages)
    chosen = np.empty(len(searched))
    for fold in set(folds):
        held_out = folds == fold
        best = best_of(table[:, ~held_out].mean(axis=1), tried)
        chosen[held_out] = table[best, held_out]
    gain = intervals([(chosen - now)[:, None]], [pages])[0]
    best = best_of(table.mean(axis=1), tried)
    accepted = enough_to_judge([pages]) and gain.low > 0 and gain.mean >= LEAST_GAIN
    flattered = float(table[best].mean() - now.mean())
    return Tuned(language, len(searched), tried[best], float(now.mean()), gain, flattered, accepted)


def _folds(pages: Sequence[str]) -> NDArray[np.int64]:
    names = sorted(set(pages))
    if len(names) < FOLDS:
        raise EvaluationError(
            f"The questions of a language are about {len(names)} pages: {FOLDS} are needed to tune by."
        )
    order = np.random.default_rng(SEED).permutation(len(names))
    fold_of: Mapping[str, int] = {names[place]: i % FOLDS for i, place in enumerate(order)}
    return np.array([fold_of[page] for page in pages], dtype=np.int64)


def _rr(one: Searched, query: Query, documents: Documents, k: int) -> float:
    labels = [documents.label(ranked.url, one.case.relevant) for ranked in fuse(one.legs, query)]
    return score(labels, one.case.relevant, k).rr
