"""The measures, as pure functions on rankings, and their 95 % bootstrap intervals.

A ranking names each page once, best first; finding any page of `relevant` is right. Several questions are about one page
and fail together, so the bootstrap resamples pages, not questions.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RESAMPLES = 2000
SEED = 20240501
CONFIDENCE = 0.95


MEASURES = ("rr", "hit_1", "hit", "precision", "recall", "f1")
"""Of the first k pages, each 0..1; but `hit_1` of the first one.

Precision is the share of relevant pages among the found ones (at most k; 0 if none was found), so a short ranking isn't
penalised for empty places. Recall is the share of the relevant pages that were found.
"""
CURVE = ("rr", "hit", "precision", "recall", "f1", "ndcg")
_TITLES = {"rr": "MRR@{}", "hit_1": "hit@1", "hit": "hit@{}", "precision": "P@{}", "recall": "R@{}", "f1": "F1@{}"}


def title(measure: str, k: int) -> str:
    """The name of a measure in tables."""
    return _TITLES.get(measure, measure).format(k)


def unique(labels: Sequence[str]) -> tuple[str, ...]:
    """Each page once, at its first rank."""
    return tuple(dict.fromkeys(labels))


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of relevant things: `found` counts from 1, `listed` is the length of the ranking, `relevant` how many
    relevant things there are in all.
    """

    found: tuple[int, ...] = ()
    listed: int = 0
    relevant: int = 0


def ranks_of(ranked: Sequence[str], relevant: Collection[str]) -> Ranks:
    """The ranks of the relevant ones in a ranking that names each thing once."""
    ranks = tuple(rank for rank, name in enumerate(ranked, start=1) if name in relevant)
    return Ranks(ranks, len(ranked), len(relevant))


def at(ranks: Ranks, k: int) -> tuple[float, ...]:
    """The measures of `CURVE` for the first k."""
    within = [rank for rank in ranks.found if rank <= k]
    if not within or not ranks.relevant:
        return (0.0,) * len(CURVE)
    precision = len(within) / min(k, ranks.listed)
    recall = len(within) / ranks.relevant
    ideal = sum(1 / log2(rank + 1) for rank in range(1, min(k, ranks.relevant) + 1))
    gain = sum(1 / log2(rank + 1) for rank in within)
    return (1 / within[0], 1.0, precision, recall, 2 * precision * recall / (precision + recall), gain / ideal)


def score(ranked: Sequence[str], relevant: Collection[str], k: int) -> dict[str, float]:
    """The `MEASURES` of one ranking; `relevant` must not be empty."""
    if k < 1 or not relevant:
        raise ValueError(f"k must be at least 1 and something must be relevant, not {k} and {relevant!r}.")
    rr, hit, precision, recall, f1, _ = at(ranks_of(unique(ranked), frozenset(relevant)), k)
    return dict(zip(MEASURES, (rr, float(rr == 1), hit, precision, recall, f1), strict=True))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


def intervals(
    parts: Sequence[Values],
    clusters: Sequence[Sequence[str]] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> list[Estimate]:
    """An estimate for each column. `clusters` names the page of each row, by part: the bootstrap resamples pages.

    Each part is resampled separately, so that it keeps its weight. Pass one part for a plain mean, and differences (B -
    A, row by row) for a paired comparison. Without clusters, or if all rows are about one page, rows are resampled.
    """
    if not parts or not all(len(part) for part in parts):
        raise ValueError("There is no mean without questions.")
    random = np.random.default_rng(seed)
    means = np.mean([part.mean(axis=0) for part in parts], axis=0)
    names = clusters or [[str(row) for row in range(len(part))] for part in parts]
    drawn = np.mean(
        [_resampled_means(part, own, resamples, random) for part, own in zip(parts, names, strict=True)], axis=0
    )
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail], axis=0)
    return [Estimate(float(means[i]), float(low[i]), float(high[i])) for i in range(len(means))]


def _resampled_means(part: Values, clusters: Sequence[str], resamples: int, random: np.random.Generator) -> Values:
    _, of_row = np.unique(np.asarray(clusters), return_inverse=True)
    if of_row.max() == 0:
        of_row = np.arange(len(part))
    n = int(of_row.max()) + 1
    sums, sizes = np.zeros((n, part.shape[1])), np.bincount(of_row, minlength=n).astype(np.float64)
    np.add.at(sums, of_row, part)
    # the number of times each cluster is drawn, for all measures in one matrix product; clusters differ in size
    counts = random.multinomial(n, np.full(n, 1 / n), size=resamples)
    return np.asarray(counts @ sums / (counts @ sizes)[:, None], dtype=np.float64)
