"""Questions in rows, by language and variant, and the means of a row with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from eval.measure.metrics import Estimate, Values, intervals
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
        """How many questions."""
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


@dataclass(frozen=True)
class Outcomes:
    """The measures of each question of a run, as they are compared with those of another run; None is unknown.

    `kind` names the command of the run. `titles` has the name in tables of each measure. A question moves by the measures
    `judged`. `k` is 0 if the measures don't depend on a number of pages.
    """

    kind: str
    cases: Sequence[Case]
    values: Sequence[Mapping[str, float | None]]
    titles: Mapping[str, str]
    judged: Sequence[str]
    config: Mapping[str, Any] = field(default_factory=dict)
    k: int = 0


class Result(Protocol):
    """Anything that can be compared question by question."""

    @property
    def outcomes(self) -> Outcomes:
        """The measures of its questions."""
        ...


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
    found: list[Group] = []
    chosen = [i for i, case in enumerate(cases) if case.doc and case.cross == cross]
    for language in sorted({cases[i].language for i in chosen}):
        own = tuple(i for i in chosen if cases[i].language == language)
        for variant in sorted({cases[i].variant for i in own} - {""}):
            part = tuple(i for i in own if cases[i].variant == variant)
            found.append(Group(language, variant, cross, (part,)))
        found.append(Group(language, ALL, cross, (own,)))
    return found


def as_matrix(values: Sequence[Mapping[str, float | None]], measures: Sequence[str]) -> Values:
    """A row for each question, a column for each measure, NaN for an unknown one."""
    rows = [[np.nan if (value := one.get(name)) is None else value for name in measures] for one in values]
    return np.array(rows, dtype=np.float64).reshape(len(values), len(measures))


@dataclass(frozen=True, slots=True)
class Block:
    """Columns that are known for the same questions of a group: their positions, by part, and the page of each."""

    columns: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    clusters: tuple[tuple[str, ...], ...]

    @property
    def n(self) -> int:
        """How many questions."""
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
        if kept := tuple(part for part in parts if part):
            # questions about one page fail together; those without a page are independent
            clusters = tuple(tuple(cases[i].doc or cases[i].id for i in part) for part in kept)
            yield Block(tuple(columns), kept, clusters)


def row_of(group: Group, cases: Sequence[Case], values: Values, measures: Sequence[str]) -> Row:
    """The means of a group with their 95 % intervals; measures that no question has are left out."""
    found, known = dict[str, Estimate](), dict[str, int]()
    for block in known_blocks(group, cases, values):
        for column, one in zip(block.columns, intervals(block.of(values), block.clusters), strict=True):
            found[measures[column]], known[measures[column]] = one, block.n
    ordered = [name for name in measures if name in found]
    return Row(
        group.language, group.variant, group.cross, group.n,
        {name: found[name] for name in ordered}, {name: known[name] for name in ordered},
    )  # fmt: skip
