"""Compares two results of the same questions, question by question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from eval.files import EvaluationError
from eval.measure.rows import ALL, MEAN, UNANSWERABLE, Outcomes, Pairs, Result, RowDifference, as_matrix
from eval.measure.tables import as_table, difference_cell, language_name, row_name
from eval.questions.cases import Case, half

LISTED = 10
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
    """B compared with A: paired differences, the questions that moved, and different settings.

    `names` are those of A and B, `titles` those of the measures. `changes` has all questions that moved, the largest move
    first; `left_out` counts questions that only one of the results has.
    """

    names: tuple[str, str]
    titles: Mapping[str, str]
    judged: tuple[str, ...]
    k: int
    n: int
    changes: tuple[Change, ...]
    left_out: int
    config: Mapping[str, tuple[Any, Any]]
    pairs: Pairs = field(repr=False, compare=False)

    @cached_property
    def rows(self) -> tuple[RowDifference, ...]:
        """The paired differences by language and variant."""
        return self.pairs.rows()

    @property
    def worse(self) -> tuple[Change, ...]:
        """The questions that became worse."""
        return tuple(change for change in self.changes if change.difference < 0)

    @property
    def better(self) -> tuple[Change, ...]:
        """The questions that became better."""
        return tuple(change for change in self.changes if change.difference > 0)

    def summary(self) -> dict[str, Any]:
        """The whole comparison as JSON values."""
        plain = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in {"pairs", "changes"}
        }
        moved = {name: [asdict(change) for change in getattr(self, name)[:LISTED]] for name in ("worse", "better")}
        counts = {"n_worse": len(self.worse), "n_better": len(self.better)}
        return plain | {"rows": [asdict(row) for row in self.rows]} | moved | counts


def compare(
    a: Result, b: Result, *, common: bool = False, only: str = "", names: tuple[str, str] = ("A", "B")
) -> Comparison:
    """Paired differences B - A. Raises `EvaluationError` if the two results are of different kinds or questions.

    With `common`, questions that only one of them has are left out; questions with the same id must still be equal.
    `only` is "even" or "odd": every second question of A.
    """
    before, other = a.outcomes, b.outcomes
    if before.kind != other.kind:
        raise EvaluationError(
            f"A is a result of `{before.kind}`, B of `{other.kind}`: only results of the same command can be compared."
        )
    if before.k != other.k:
        raise EvaluationError(f"A was measured at k = {before.k}, B at k = {other.k}: measure both with the same --k.")
    left_out = _refuse_different_sets(before, other, common=common)
    pairs = _pairs(before, other, only)
    changes = sorted(_changes(pairs, before.judged), key=lambda change: -abs(change.difference))
    return Comparison(
        names, before.titles, tuple(before.judged), before.k, len(pairs.cases), tuple(changes), left_out,
        _config_changes(before.config, other.config), pairs,
    )  # fmt: skip


def _pairs(a: Outcomes, b: Outcomes, only: str) -> Pairs:
    of_b = {case.id: values for case, values in zip(b.cases, b.values, strict=True)}
    of_a = {case.id: values for case, values in zip(a.cases, a.values, strict=True)}
    cases = [case for case in (half(a.cases, only) if only else a.cases) if case.id in of_b]
    measures = tuple(a.titles)
    before, after = (as_matrix([of[case.id] for case in cases], measures) for of in (of_a, of_b))
    return Pairs(cases, measures, before, after)


def _refuse_different_sets(a: Outcomes, b: Outcomes, *, common: bool) -> int:
    of_a, of_b = ({case.id: case for case in outcomes.cases} for outcomes in (a, b))
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


def _changes(pairs: Pairs, judged: tuple[str, ...] | Any) -> Iterator[Change]:
    columns = {name: pairs.measures.index(name) for name in judged}
    for case, before, after in zip(pairs.cases, pairs.a, pairs.b, strict=True):
        values = {name: (float(before[i]), float(after[i])) for name, i in columns.items()}
        # a difference to NaN is never large: a measure that one of them lacks has not moved
        moved = {name: (a, b) for name, (a, b) in values.items() if abs(b - a) >= LEAST}
        if moved:
            yield Change(case, sum(b - a for a, b in moved.values()), moved)


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


HEADER = ("difference, 95 %", "before", "after", "n", "better", "worse", "equal")
STAR = "* the 95 % interval (bootstrap of the paired differences, over pages) doesn't contain 0, and there are enough questions"
WIDE = 4  # measures in the table by language


def comparison_text(comparison: Comparison) -> str:
    """The comparison for the terminal; * marks significant differences."""
    before, after = comparison.names
    lines = [f"{after} minus {before}, {comparison.n} questions in both", ""]
    lines += as_table(*whole_table(comparison))
    rows = group_table(comparison)
    lines += ["", *as_table(*rows)] if rows[1] else []
    lines += ["", STAR]
    if comparison.left_out:
        lines.append(f"{comparison.left_out} questions that only one of the two has are left out.")
    lines += _moves("worse", comparison, comparison.worse)
    lines += _moves("better", comparison, comparison.better)
    if comparison.config:
        lines += ["", "Measured differently:"]
        lines += [f"  {name}: {a} → {b}" for name, (a, b) in comparison.config.items()]
    return "\n".join(lines)


def whole_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Each measure over the mean of the languages, and over the questions that no page answers."""
    return ["", *HEADER], [
        [
            comparison.titles[name] if row.language != UNANSWERABLE else f"{comparison.titles[name]}, {UNANSWERABLE}",
            difference_cell(difference), f"{difference.before:.3f}", f"{difference.after:.3f}", str(difference.n),
            str(difference.better), str(difference.worse), str(difference.n - difference.better - difference.worse),
        ]
        for row in _wholes(comparison)
        for name, difference in row.measures.items()
    ]  # fmt: skip


def group_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """The differences by language and variant, in the measures by which questions are judged."""
    rows = [row for row in comparison.rows if row not in _wholes(comparison)]
    known = [name for name in comparison.titles if any(name in row.measures for row in rows)]
    # those by which questions are judged, and among these those that moved
    shown = sorted(known, key=lambda name: (name not in comparison.judged, not _moved(name, rows)))[:WIDE]
    cells = [
        [row_name(row), str(row.n), *(difference_cell(row.measures[m]) if m in row.measures else "–" for m in shown)]
        for row in rows
    ]
    return ["difference", "n", *(comparison.titles[name] for name in shown)], cells


def _moved(name: str, rows: Sequence[RowDifference]) -> bool:
    return any(row.measures[name].better or row.measures[name].worse for row in rows if name in row.measures)


def _wholes(comparison: Comparison) -> list[RowDifference]:
    wholes = [row for row in comparison.rows if row.language in {MEAN, UNANSWERABLE}]
    return wholes or [row for row in comparison.rows if row.variant == ALL]


def moved(change: Change, comparison: Comparison) -> str:
    """Returns the change, as "1 → 2" for the rank of the first right page, "faithful 1.00 → 0.00" for other measures."""
    if comparison.k:
        a, b = (str(round(1 / value)) if value else "–" for value in change.values["rr"])
        return f"{a} → {b}"
    values = change.values.items()
    return ", ".join(f"{comparison.titles[name]} {_number(a)} → {_number(b)}" for name, (a, b) in values)


def _number(value: float) -> str:
    return f"{value:.2f}".removesuffix(".00")


def _moves(name: str, comparison: Comparison, moves: Sequence[Change]) -> list[str]:
    listed = f", the {LISTED} biggest moves" if len(moves) > LISTED else ""
    what = "First right page" if comparison.k else "Became"
    return [
        "",
        f"{what} {name}: {len(moves)} questions{listed}",
        *(
            f"  {moved(move, comparison)}  [{language_name(move.case.language, cross=move.case.cross)} {move.case.variant}]"
            f" {move.case.question}"
            for move in moves[:LISTED]
        ),
    ]
