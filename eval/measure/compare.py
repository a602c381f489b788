"""Compares two results of the same questions, question by question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eval.files import EvaluationError
from eval.measure.rows import Pairs, RowDifference, as_matrix
from eval.questions.cases import Case

if TYPE_CHECKING:
    from eval.measure.result import Outcome, Result

LEAST = 0.005  # a smaller difference looks like none
_TEXT = ("language", "variant", "cross", "question", "doc", "also")


@dataclass(frozen=True, slots=True)
class Change:
    """A question that moved: the sum of its differences, and each measure that differs, in A and in B."""

    case: Case
    difference: float
    values: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Comparison:
    """B compared with A, whose `names` these are: paired differences, the questions that moved, and different settings.

    `changes` has all questions that moved, the largest move first; `left_out` counts questions that only one of the results has.
    """

    names: tuple[str, str]
    judged: tuple[str, ...]
    k: int
    changes: tuple[Change, ...]
    left_out: int
    config: Mapping[str, tuple[Any, Any]]
    pairs: Pairs = field(repr=False, compare=False)

    @cached_property
    def rows(self) -> tuple[RowDifference, ...]:
        """The paired differences by language and variant."""
        return self.pairs.rows()

    @property
    def n(self) -> int:
        """The number of compared questions."""
        return len(self.pairs.cases)

    @property
    def worse(self) -> tuple[Change, ...]:
        """The questions that became worse."""
        return tuple(change for change in self.changes if change.difference < 0)

    @property
    def better(self) -> tuple[Change, ...]:
        """The questions that became better."""
        return tuple(change for change in self.changes if change.difference > 0)

    def summary(self) -> dict[str, Any]:
        """The figures as JSON values."""
        counts = {"n": self.n, "worse": len(self.worse), "better": len(self.better), "left_out": self.left_out}
        return {"names": self.names, **counts, "rows": [asdict(row) for row in self.rows]}


def compare(a: Result, b: Result, *, common: bool = False, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """Paired differences B - A of the first contestant of each.

    With `common`, questions that only one of them has are left out; questions with the same id must still be equal. Raises
    `EvaluationError` if the two are of different kinds, questions or judges.
    """
    if a.kind != b.kind:
        raise EvaluationError(
            f"{names[0]} is a result of `{a.kind}`, {names[1]} of `{b.kind}`: only results of the same command can be compared."
        )
    if a.k != b.k:
        raise EvaluationError(f"A was measured at k = {a.k}, B at k = {b.k}: measure both with the same --k.")
    if a.judge != b.judge:
        raise EvaluationError(
            f"The judge of A is {a.judge or 'none'}, that of B {b.judge or 'none'}: their figures can't be compared."
            " `eval run --against A.json` measures both in the same way."
        )
    of_a, of_b = (
        {outcome.case.id: outcome for outcome in result.of(result.contestants[0]).outcomes} for result in (a, b)
    )
    left_out = _left_out(of_a, of_b, common=common)
    cases = [outcome.case for id_, outcome in of_a.items() if id_ in of_b]
    before, after = (as_matrix([of[case.id].values for case in cases], a.measures) for of in (of_a, of_b))
    pairs = Pairs(cases, a.measures, before, after)
    changes = sorted(_changes(pairs, a.judged), key=lambda change: -abs(change.difference))
    flat_a, flat_b = dict(flat(a.config)), dict(flat(b.config))
    config = {name: (flat_a.get(name), flat_b.get(name)) for name in {**flat_a, **flat_b} if name != "date"}
    differing = {name: both for name, both in config.items() if both[0] != both[1]}
    return Comparison(names, a.judged, a.k, tuple(changes), left_out, differing, pairs)


def _left_out(of_a: Mapping[str, Outcome], of_b: Mapping[str, Outcome], *, common: bool) -> int:
    """The number of questions that only one of both has. Raises `EvaluationError` if they are of different sets."""
    both = of_a.keys() & of_b.keys()
    if other := [id_ for id_ in both if _text(of_a[id_].case) != _text(of_b[id_].case)]:
        raise EvaluationError(
            f"{len(other)} questions have the same id in A and B but different content, for example {min(other)!r}:"
            f" {of_a[min(other)].case.question!r} and {of_b[min(other)].case.question!r}."
            " Measure both with the same version of the set."
        )
    if not both:
        raise EvaluationError("A and B have no question in common: they measured different sets.")
    only_a, only_b = len(of_a) - len(both), len(of_b) - len(both)
    if (only_a or only_b) and not common:
        raise EvaluationError(
            f"A and B asked different questions: {only_a} are only in A, {only_b} only in B."
            " Measure both with the same set, or compare the common questions with --common."
        )
    return only_a + only_b


def _text(case: Case) -> tuple[Any, ...]:
    return tuple(getattr(case, name) for name in _TEXT)


def _changes(pairs: Pairs, judged: Sequence[str]) -> Iterator[Change]:
    columns = {name: pairs.measures.index(name) for name in judged}
    for case, before, after in zip(pairs.cases, pairs.a, pairs.b, strict=True):
        values = {name: (float(before[i]), float(after[i])) for name, i in columns.items()}
        # a difference to NaN is never large: a measure that one of them lacks has not moved
        moved = {name: (a, b) for name, (a, b) in values.items() if abs(b - a) >= LEAST}
        if moved:
            yield Change(case, sum(b - a for a, b in moved.values()), moved)


def flat(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a nested configuration with their paths, as `index.recipe.embedder`."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{name}.")
        else:
            # JSON has no tuples: a loaded result must equal the one in memory
            yield f"{path}{name}", list(value) if isinstance(value, tuple) else value
