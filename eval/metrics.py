"""The measures, as pure functions on ranked pages, and their 95 % bootstrap intervals.

A ranking names each page once, best first; `relevant` holds every page that counts as a hit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RESAMPLES = 2000
SEED = 20240501
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one question, each 0..1.

    All but `hit_1` look at the first k pages. Precision is the share of relevant ones among the pages
    found (k at most, fewer where fewer came back; 0 where none did), so a short ranking isn't punished
    for places it left empty. Recall is the share of the relevant pages that were found.
    """

    rr: float
    hit_1: float
    hit: float
    precision: float
    recall: float
    f1: float


MEASURES = tuple(field.name for field in fields(Scores))


def title(measure: str, k: int) -> str:
    """How a measure is called in tables."""
    return {
        "rr": f"MRR@{k}",
        "hit_1": "hit@1",
        "hit": f"hit@{k}",
        "precision": f"P@{k}",
        "recall": f"R@{k}",
        "f1": f"F1@{k}",
    }[measure]


def unique(labels: Sequence[str]) -> tuple[str, ...]:
    """Each page once, at its first rank."""
    return tuple(dict.fromkeys(labels))


def score(ranked: Sequence[str], relevant: Collection[str], k: int) -> Scores:
    """The measures of one ranking; `relevant` must not be empty."""
    if k < 1 or not relevant:
        raise ValueError(f"k must be at least 1 and something must be relevant, not {k} and {relevant!r}.")
    top = unique(ranked)[:k]
    wanted = frozenset(relevant)
    ranks = [rank for rank, page in enumerate(top, start=1) if page in wanted]
    precision = len(ranks) / len(top) if top else 0.0
    recall = len(ranks) / len(wanted)
    return Scores(
        rr=1 / ranks[0] if ranks else 0.0,
        hit_1=float(ranks[:1] == [1]),
        hit=float(bool(ranks)),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if ranks else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """True when 0 lies outside the interval."""
        return self.low > 0 or self.high < 0


def as_values(scores: Sequence[Scores]) -> Values:
    """A row for each question, a column for each of `MEASURES`."""
    return np.array([astuple(one) for one in scores], dtype=np.float64).reshape(len(scores), len(MEASURES))


def estimate(parts: Sequence[Values], *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Estimate]:
    """The mean of the parts' means for each measure, with percentile bootstrap intervals.

    Questions are drawn anew within each part, so that every part keeps its size and its weight. Give
    one part for a plain mean, and differences (B - A, row by row) for a paired comparison.
    """
    if not parts or not all(len(part) for part in parts):
        raise ValueError("There is no mean of no questions.")
    random = np.random.default_rng(seed)
    means = np.mean([part.mean(axis=0) for part in parts], axis=0)
    drawn = np.mean([_resampled_means(part, resamples, random) for part in parts], axis=0)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail], axis=0)
    return {measure: Estimate(float(means[i]), float(low[i]), float(high[i])) for i, measure in enumerate(MEASURES)}


def _resampled_means(part: Values, resamples: int, random: np.random.Generator) -> Values:
    # how often each question is drawn, as one matrix product for all the measures
    n = len(part)
    counts = random.multinomial(n, np.full(n, 1 / n), size=resamples)
    return np.asarray(counts @ part / n, dtype=np.float64)
