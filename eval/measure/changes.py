"""A comparison of two results as text: the measures as a whole, by language and variant, and the questions that moved."""

from __future__ import annotations

from collections.abc import Sequence

from eval.measure.compare import LISTED, Change, Comparison
from eval.measure.paired import RowDifference
from eval.measure.rows import ALL, MEAN, UNANSWERABLE
from eval.measure.tables import as_table, difference_cell, language_name, row_name

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
            difference_cell(one), f"{one.before:.3f}", f"{one.after:.3f}", str(one.n),
            str(one.better), str(one.worse), str(one.n - one.better - one.worse),
        ]
        for row in _wholes(comparison)
        for name, one in row.measures.items()
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
    found = [row for row in comparison.rows if row.language in {MEAN, UNANSWERABLE}]
    return found or [row for row in comparison.rows if row.variant == ALL]


def moved(change: Change, comparison: Comparison) -> str:
    """What moved, as "1 → 2" for the rank of the first right page, "faithful 1.00 → 0.00" for other measures."""
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
            f"  {moved(one, comparison)}  [{language_name(one.case.language, cross=one.case.cross)} {one.case.variant}]"
            f" {one.case.question}"
            for one in moves[:LISTED]
        ),
    ]
