"""Paired differences of two runs: the same questions, B minus A, by language and variant.

The intervals are percentile bootstrap intervals of the mean difference that resample pages (Efron and Tibshirani 1993,
chapter 13; clusters: Davison and Hinkley 1997, section 3.8). Differences of judgements are -1, 0 or 1 and often 0, which a
t interval wouldn't fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eval.measure.metrics import CONFIDENCE, RESAMPLES, Estimate, Values, intervals
from eval.measure.rows import ALL, Block, Group, groups, known_blocks
from eval.questions.cases import Case

ENOUGH = 10
ENOUGH_PAGES = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """B - A of one measure over the `n` questions that have it in both; `before` and `after` are the two means.

    `better` and `worse` count questions. `outside_noise`: the interval doesn't contain 0, with at least 10 questions about
    5 pages.
    """

    estimate: Estimate
    outside_noise: bool
    n: int
    before: float
    after: float
    better: int
    worse: int


@dataclass(frozen=True, slots=True)
class RowDifference:
    """The differences of one group of questions."""

    language: str
    variant: str
    cross: bool
    n: int
    measures: Mapping[str, Difference]


@dataclass(frozen=True)
class Pairs:
    """The same questions in two runs: a row for each question, a column for each measure, NaN for an unknown one."""

    cases: Sequence[Case]
    measures: Sequence[str]
    a: Values
    b: Values

    def rows(self, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> tuple[RowDifference, ...]:
        """The differences in the order of `groups`."""
        return tuple(self._row(group, confidence, resamples) for group in groups(self.cases))

    @property
    def everything(self) -> RowDifference:
        """The differences over all questions together."""
        whole = Group(ALL, ALL, cross=False, parts=(tuple(range(len(self.cases))),))
        return self._row(whole, CONFIDENCE, RESAMPLES)

    def _row(self, group: Group, confidence: float, resamples: int) -> RowDifference:
        found = dict[str, Difference]()
        for block in known_blocks(group, self.cases, self.b - self.a):
            found |= self._differences(block, confidence, resamples)
        measures = {name: found[name] for name in self.measures if name in found}
        return RowDifference(group.language, group.variant, group.cross, group.n, measures)

    def _differences(self, block: Block, confidence: float, resamples: int) -> dict[str, Difference]:
        before, after = block.of(self.a), block.of(self.b)
        gaps = [b - a for a, b in zip(before, after, strict=True)]
        signs = np.sign(np.concatenate(gaps))
        means = [np.mean([part.mean(axis=0) for part in parts], axis=0) for parts in (before, after)]
        enough = enough_to_judge(block.clusters)
        estimates = intervals(gaps, block.clusters, resamples=resamples, confidence=confidence)
        return {
            self.measures[column]: Difference(
                one, one.excludes_zero and enough, block.n, float(means[0][i]), float(means[1][i]),
                int((signs[:, i] > 0).sum()), int((signs[:, i] < 0).sum()),
            )
            for i, (column, one) in enumerate(zip(block.columns, estimates, strict=True))
        }  # fmt: skip


def enough_to_judge(clusters: Sequence[Sequence[str]]) -> bool:
    """False if there are too few questions or pages for a reliable bootstrap interval."""
    pages = [page for part in clusters for page in part]
    return len(pages) >= ENOUGH and len(set(pages)) >= ENOUGH_PAGES
