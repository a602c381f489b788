"""Answers as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eval.answers.result import CELLS, AnswerResult, AnswerRow
from eval.answers.score import MEASURES
from eval.measure.changes import comparison_text
from eval.measure.tables import as_table, row_name


def answers_text(result: AnswerResult) -> str:
    """All known measures by contestant and group, the differences, and the failures."""
    lines = list[str]()
    for name in result.contestants:
        rows = [row for row in result.rows if row.contestant == name]
        shown = [measure for measure in MEASURES if any(measure in row.measures for row in rows)]
        lines += [
            *as_table([name, "n", *shown], [[row_name(row), str(row.n), *answer_cells(row, shown)] for row in rows]),
            "",
        ]
    for table in (kind_table(result), effort_table(result)):
        lines += [*as_table(*table), ""] if table[1] else []
    if note := result.config.get("note"):
        lines += [note, ""]
    for comparison in result.comparisons:
        lines += [comparison_text(comparison), ""]
    lines.append(f"Intervals are 95 % and resample pages. Judge: {result.config.get('judge') or 'none'}.")
    lines += _failed_steps(result)
    if result.failed or result.malformed:
        lines.append(
            f"FAILED: {result.failed} answers, {result.malformed} judgements. Run it again: it asks only these again."
        )
        errors = [one.answer.error for one in result.scored if one.answer.error]
        lines += [f"The first error: {errors[0]}"] if errors else []
    return "\n".join(lines)


def _failed_steps(result: AnswerResult) -> list[str]:
    """The steps that failed, so that an answer had to do without them, by contestant."""
    counts = Counter((one.answer.contestant, step) for one in result.scored for step in one.answer.failed_steps)
    return [
        f"{name}: {step} failed on {n} questions, which were answered without it." for (name, step), n in counts.items()
    ]


def kind_table(result: AnswerResult) -> tuple[list[str], list[list[str]]]:
    """How many answers are faithful, complete and in the right language; no rows if nothing was judged."""
    if not any(cell.kind != CELLS[-1] and cell.right_language + cell.wrong_language for cell in result.cells):
        return [], []
    rows = []
    for name in result.contestants:
        cells = [cell for cell in result.cells if cell.contestant == name]
        total = sum(cell.right_language + cell.wrong_language for cell in cells) or 1
        for cell in cells:
            both = cell.right_language + cell.wrong_language
            shares = [f"{n} ({100 * n / total:.0f} %)" for n in (cell.right_language, cell.wrong_language, both)]
            rows.append([f"{name}: {cell.kind}", *shares])
    return ["answers that are", "right language", "wrong language", "all"], rows


def effort_table(result: AnswerResult) -> tuple[list[str], list[list[str]]]:
    """Time and tokens of an answer, a row for each contestant."""
    rows = [
        [one.contestant, str(one.n), f"{one.ms_median:.0f}", f"{one.ms_p95:.0f}",
         *("–" if tokens is None else f"{tokens:.0f}" for tokens in (one.prompt_tokens, one.completion_tokens))]
        for one in result.efforts
    ]  # fmt: skip
    return ["effort of an answer", "n", "ms, median", "ms, p95", "tokens in", "tokens out"], rows


def answer_cells(row: AnswerRow, measures: Sequence[str]) -> list[str]:
    """These measures with their intervals, a dash for an unknown one."""
    return [f"{row.measures[m].mean:.2f} {_interval(row, m)}" if m in row.measures else "–" for m in measures]


def _interval(row: AnswerRow, measure: str) -> str:
    one = row.measures[measure]
    return f"{one.low:.2f}–{one.high:.2f}"
