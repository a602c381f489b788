"""The measures, as pure functions on rankings, their 95 % bootstrap intervals, and rows of questions by language and wording.

A ranking names each page once, best first; finding any page of `relevant` is right. Several questions are about one page
and fail together, so the bootstrap resamples pages, not questions.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

import numpy as np
from numpy.typing import NDArray

from eval.questions.cases import Case

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
DEPTHS = (5, 10, 15, 20, 25, 30)
"""Numbers of chunks at which searches by clusters are measured."""
_TITLES = {"rr": "MRR@{}", "hit_1": "hit@1", "hit": "hit@{}", "precision": "P@{}", "recall": "R@{}", "f1": "F1@{}"}
_TITLES |= {f"f1_{k}": f"F1@{k}" for k in DEPTHS}


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


MEAN = "mean"
ALL = "all"
UNANSWERABLE = "unanswerable"


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one row: positions in the results, in several parts for a mean of means."""

    language: str
    variant: str
    cross: bool
    parts: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        """The number of questions."""
        return sum(len(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Row:
    """The measures of one group, each with its interval; `variant` is "all" for a whole language.

    `known` says how many of the `n` questions have each measure.
    """

    language: str
    variant: str
    cross: bool
    n: int
    measures: Mapping[str, Estimate]
    known: Mapping[str, int] = field(default_factory=dict)


def groups(cases: Sequence[Case]) -> tuple[Group, ...]:
    """By language: its variants, then all of them; then the mean of languages; then questions across languages in the
    same way; then the questions that no page answers.
    """
    plain = _languages(cases, cross=False)
    rows = list(plain)
    if plain:
        wholes = tuple(group.parts[0] for group in plain if group.variant == ALL)
        rows.append(Group(MEAN, ALL, cross=False, parts=wholes))
    rows += _languages(cases, cross=True)
    if rest := tuple(i for i, case in enumerate(cases) if not case.answerable):
        rows.append(Group(UNANSWERABLE, ALL, cross=False, parts=(rest,)))
    return tuple(rows)


def _languages(cases: Sequence[Case], *, cross: bool) -> list[Group]:
    groups: list[Group] = []
    chosen = [i for i, case in enumerate(cases) if case.answerable and case.cross == cross]
    for language in sorted({cases[i].language for i in chosen}):
        own = tuple(i for i in chosen if cases[i].language == language)
        for variant in sorted({cases[i].variant for i in own} - {""}):
            part = tuple(i for i in own if cases[i].variant == variant)
            groups.append(Group(language, variant, cross, (part,)))
        groups.append(Group(language, ALL, cross, (own,)))
    return groups


def as_matrix(values: Sequence[Mapping[str, float | None]], measures: Sequence[str]) -> Values:
    """A row for each question, a column for each measure, NaN for an unknown one."""
    rows = [
        [np.nan if (value := row_values.get(name)) is None else value for name in measures] for row_values in values
    ]
    return np.array(rows, dtype=np.float64).reshape(len(values), len(measures))


@dataclass(frozen=True, slots=True)
class Block:
    """Columns that are known for the same questions of a group: their positions, by part, and the page of each."""

    columns: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    clusters: tuple[tuple[str, ...], ...]

    @property
    def n(self) -> int:
        """The number of questions."""
        return sum(map(len, self.parts))

    def of(self, values: Values) -> list[Values]:
        """The values of these questions and columns, part by part."""
        return [values[np.ix_(part, self.columns)] for part in self.parts]


def known_blocks(group: Group, cases: Sequence[Case], values: Values) -> Iterator[Block]:
    """The columns of the group that are known for any question; the bootstrap resamples the pages of a block."""
    known, alike = ~np.isnan(values), dict[bytes, list[int]]()
    rows = [i for part in group.parts for i in part]
    for column in range(values.shape[1]):
        alike.setdefault(known[rows, column].tobytes(), []).append(column)
    for columns in alike.values():
        parts = [tuple(i for i in part if known[i, columns[0]]) for part in group.parts]
        if filled := tuple(part for part in parts if part):
            # questions about one page fail together; those without a page are independent
            clusters = tuple(tuple(cases[i].doc or cases[i].id for i in part) for part in filled)
            yield Block(tuple(columns), filled, clusters)


def row_of(group: Group, cases: Sequence[Case], values: Values, measures: Sequence[str]) -> Row:
    """The means of a group with their 95 % intervals; measures that no question has are left out."""
    estimates, known = dict[str, Estimate](), dict[str, int]()
    for block in known_blocks(group, cases, values):
        for column, estimate in zip(block.columns, intervals(block.of(values), block.clusters), strict=True):
            estimates[measures[column]], known[measures[column]] = estimate, block.n
    ordered = [name for name in measures if name in estimates]
    return Row(
        group.language, group.variant, group.cross, group.n,
        {name: estimates[name] for name in ordered}, {name: known[name] for name in ordered},
    )  # fmt: skip


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

    def _row(self, group: Group, confidence: float, resamples: int) -> RowDifference:
        differences = dict[str, Difference]()
        for block in known_blocks(group, self.cases, self.b - self.a):
            differences |= self._differences(block, confidence, resamples)
        measures = {name: differences[name] for name in self.measures if name in differences}
        return RowDifference(group.language, group.variant, group.cross, group.n, measures)

    def _differences(self, block: Block, confidence: float, resamples: int) -> dict[str, Difference]:
        before, after = block.of(self.a), block.of(self.b)
        gaps = [b - a for a, b in zip(before, after, strict=True)]
        signs = np.sign(np.concatenate(gaps))
        means = [np.mean([part.mean(axis=0) for part in parts], axis=0) for parts in (before, after)]
        pages = [page for part in block.clusters for page in part]
        enough = len(pages) >= ENOUGH and len(set(pages)) >= ENOUGH_PAGES
        estimates = intervals(gaps, block.clusters, resamples=resamples, confidence=confidence)
        return {
            self.measures[column]: Difference(
                estimate, enough and (estimate.low > 0 or estimate.high < 0), block.n, float(means[0][i]), float(means[1][i]),
                int((signs[:, i] > 0).sum()), int((signs[:, i] < 0).sum()),
            )
            for i, (column, estimate) in enumerate(zip(block.columns, estimates, strict=True))
        }  # fmt: skip
