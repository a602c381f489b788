"""Compares two results of the same questions, question by question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eval.errors import EvaluationError
from eval.measure.metrics import Estimate, as_values, estimate
from eval.measure.result import CaseResult, RetrievalResult, groups, parts_of
from eval.questions.cases import Case, half

ENOUGH = 10
ENOUGH_PAGES = 5
LISTED = 10
_TEXT = ("language", "variant", "cross", "question", "doc", "also")


@dataclass(frozen=True, slots=True)
class Difference:
    """B - A of one measure. `outside_noise`: the interval doesn't contain 0, with at least 10 questions about 5 pages."""

    estimate: Estimate
    outside_noise: bool


@dataclass(frozen=True, slots=True)
class RowDifference:
    """The differences of one group of questions."""

    language: str
    variant: str
    cross: bool
    n: int
    measures: Mapping[str, Difference]


@dataclass(frozen=True, slots=True)
class Change:
    """A question whose first right page moved; rank 0 means that it isn't among the first k pages."""

    case: Case
    rank_a: int
    rank_b: int
    difference: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """B compared with A: rows of paired differences, the questions that moved most, and different settings.

    `worse` and `better` have the 10 largest moves each, `n_worse` and `n_better` the numbers of all; `left_out` counts
    questions that only one of the results has.
    """

    k: int
    n: int
    rows: tuple[RowDifference, ...]
    worse: tuple[Change, ...]
    n_worse: int
    better: tuple[Change, ...]
    n_better: int
    left_out: int
    config: Mapping[str, tuple[Any, Any]]

    def summary(self) -> dict[str, Any]:
        """The whole comparison as JSON values."""
        return asdict(self)


def compare(a: RetrievalResult, b: RetrievalResult, *, common: bool = False, only: str = "") -> Comparison:
    """Paired differences B - A. Raises `EvaluationError` if the two results have different questions.

    With `common`, questions that only one of them has are left out; questions with the same id must still be equal.
    `only` is "even" or "odd": every second question of A.
    """
    if a.k != b.k:
        raise EvaluationError(f"A was measured at k = {a.k}, B at k = {b.k}: measure both with the same --k.")
    left_out = _refuse_different_sets(a, b, common=common)
    asked = [one.case for one in a.cases]
    of_a = frozenset(case.id for case in (half(asked, only) if only else asked))
    both = of_a & frozenset(one.case.id for one in b.cases)
    a, b = a.only(both), b.only(both)
    of_b = {one.case.id: one for one in b.cases}
    pairs = [(one, of_b[one.case.id]) for one in a.cases]
    changes = sorted(_changes(pairs), key=lambda change: -abs(change.difference))
    worse = [change for change in changes if change.difference < 0]
    better = [change for change in changes if change.difference > 0]
    return Comparison(
        k=a.k,
        n=len(pairs),
        rows=_rows(pairs),
        worse=tuple(worse[:LISTED]),
        n_worse=len(worse),
        better=tuple(better[:LISTED]),
        n_better=len(better),
        left_out=left_out,
        config=_config_changes(a.config, b.config),
    )


def _refuse_different_sets(a: RetrievalResult, b: RetrievalResult, *, common: bool) -> int:
    of_a, of_b = ({one.case.id: one.case for one in result.cases} for result in (a, b))
    other = [id_ for id_ in of_a.keys() & of_b.keys() if _text(of_a[id_]) != _text(of_b[id_])]
    if other:
        raise EvaluationError(
            f"{len(other)} questions have the same id in A and B but different content, for example {min(other)!r}:"
            f" {of_a[min(other)].question!r} and {of_b[min(other)].question!r}."
            " Measure both with the same version of the set."
        )
    if not of_a.keys() & of_b.keys():
        raise EvaluationError("A and B have no question in common: they measured different sets.")
    only_a, only_b = of_a.keys() - of_b.keys(), of_b.keys() - of_a.keys()
    if (only_a or only_b) and not common:
        raise EvaluationError(
            f"A and B asked different questions: {len(only_a)} are only in A, {len(only_b)} only in B."
            " Measure both with the same set, or compare the common questions with --common."
        )
    return len(only_a) + len(only_b)


def _text(case: Case) -> tuple[Any, ...]:
    return tuple(getattr(case, name) for name in _TEXT)


def _rows(pairs: list[tuple[CaseResult, CaseResult]]) -> tuple[RowDifference, ...]:
    differences = as_values([b.scores for _, b in pairs]) - as_values([a.scores for a, _ in pairs])
    rows = []
    cases = [a.case for a, _ in pairs]
    for group in groups(cases):
        clusters = group.clusters(cases)
        estimates = estimate(parts_of(differences, group), clusters)
        enough = enough_to_judge(clusters)
        measures = {
            name: Difference(one, outside_noise=one.excludes_zero and enough) for name, one in estimates.items()
        }
        rows.append(RowDifference(group.language, group.variant, group.cross, group.n, measures))
    return tuple(rows)


def enough_to_judge(clusters: Sequence[Sequence[str]]) -> bool:
    """False if there are too few questions or pages for a reliable bootstrap interval."""
    pages = [page for part in clusters for page in part]
    return len(pages) >= ENOUGH and len(set(pages)) >= ENOUGH_PAGES


def _changes(pairs: list[tuple[CaseResult, CaseResult]]) -> Iterator[Change]:
    for a, b in pairs:
        if a.scores.rr != b.scores.rr:
            yield Change(a.case, _rank(a), _rank(b), b.scores.rr - a.scores.rr)


def _rank(result: CaseResult) -> int:
    return round(1 / result.scores.rr) if result.scores.rr else 0


def _config_changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    flat_a, flat_b = dict(flat(a)), dict(flat(b))
    names = [name for name in {**flat_a, **flat_b} if name != "date"]
    return {name: (flat_a.get(name), flat_b.get(name)) for name in names if flat_a.get(name) != flat_b.get(name)}


def flat(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a nested configuration with their paths, as `index.recipe.embedder`."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{name}.")
        else:
            # JSON has no tuples: a loaded result must equal the one in memory
            yield f"{path}{name}", list(value) if isinstance(value, tuple) else value
