"""Questions of a set as rows, by language and wording, and paired differences of two results over the same rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eval.measure.metrics import CONFIDENCE, RESAMPLES, Estimate, Values, intervals
from eval.questions.cases import Case

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
    if rest := tuple(i for i, case in enumerate(cases) if not case.doc):
        rows.append(Group(UNANSWERABLE, ALL, cross=False, parts=(rest,)))
    return tuple(rows)


def _languages(cases: Sequence[Case], *, cross: bool) -> list[Group]:
    groups: list[Group] = []
    chosen = [i for i, case in enumerate(cases) if case.doc and case.cross == cross]
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
