"""Answers as people read them in the terminal, and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from eval.answers.result import CELLS, UNANSWERABLE, AnswerResult, AnswerRow
from eval.answers.score import MEASURES, Scored
from eval.measure.result import ALL, MEAN
from eval.measure.tables import VARIANTS, as_table
from eval.page.frame import page, section, table, tiles
from eval.page.retrieval import configuration
from eval.page.svg import Bar, bars, legend

WORST = 20
SHOWN = ("faithful", "complete", "correctness", "language")


def answers_text(result: AnswerResult) -> str:
    """Every measure that is known, by contestant and group; differences; what failed."""
    lines = list[str]()
    for name in result.contestants:
        rows = [row for row in result.rows if row.contestant == name]
        shown = [measure for measure in MEASURES if any(measure in row.measures for row in rows)]
        lines += [*as_table([name, "n", *shown], [[_name(row), str(row.n), *_cells(row, shown)] for row in rows]), ""]
    lines += _kinds(result)
    lines += [*as_table(*_effort_rows(result)), ""]
    if result.differences:
        lines.append(f"Against {result.contestants[0]} (* the 95 % interval leaves out 0):")
        lines += [
            f"  {d.contestant} {d.measure}: {d.estimate.mean:+.3f}{'*' if d.outside_noise else ''}"
            f" {d.estimate.low:+.3f}…{d.estimate.high:+.3f} (n={d.n})"
            for d in result.differences
        ]
    lines.append(f"Intervals are 95 % and draw pages. Judge: {result.config.get('judge') or 'none'}.")
    if result.failed or result.malformed:
        lines.append(
            f"FAILED: {result.failed} answers, {result.malformed} judgements. Run it again: only these are asked anew."
        )
    return "\n".join(lines)


def _kinds(result: AnswerResult) -> list[str]:
    if not _judged(result):
        return []
    return [*as_table(*_kind_rows(result)), ""]


def _judged(result: AnswerResult) -> bool:
    return any(cell.kind != CELLS[-1] and cell.right_language + cell.wrong_language for cell in result.cells)


def _kind_rows(result: AnswerResult) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name in result.contestants:
        cells = [cell for cell in result.cells if cell.contestant == name]
        total = sum(cell.right_language + cell.wrong_language for cell in cells) or 1
        for cell in cells:
            both = cell.right_language + cell.wrong_language
            shares = [f"{n} ({100 * n / total:.0f} %)" for n in (cell.right_language, cell.wrong_language, both)]
            rows.append([f"{name}: {cell.kind}", *shares])
    return ["answers that are", "right language", "wrong language", "all"], rows


def _effort_rows(result: AnswerResult) -> tuple[list[str], list[list[str]]]:
    rows = [
        [one.contestant, str(one.n), f"{one.ms_median:.0f}", f"{one.ms_p95:.0f}",
         *("–" if tokens is None else f"{tokens:.0f}" for tokens in (one.prompt_tokens, one.completion_tokens))]
        for one in result.efforts
    ]  # fmt: skip
    return ["an answer takes", "n", "ms, median", "ms, p95", "tokens in", "tokens out"], rows


def answers_page(result: AnswerResult) -> str:
    """The whole page: figures, bars, the table of judgements, differences, worst answers, configuration."""
    lead = f"{len(result.scored)} answers of {', '.join(result.contestants)}; {result.config.get('date', '')}"
    shown = [measure for measure in MEASURES if any(measure in row.measures for row in result.rows)]
    rows = [[_name(row), row.contestant, str(row.n), *_cells(row, shown)] for row in result.rows]
    differences = [
        [d.contestant, d.measure, str(d.n), f"{d.estimate.mean:+.3f}", f"{d.estimate.low:+.3f}…{d.estimate.high:+.3f}",
         "yes" if d.outside_noise else "no"]
        for d in result.differences
    ]  # fmt: skip
    return page(
        f"Answers: {result.config.get('set', 'a question set')}",
        lead,
        [
            _tiles(result),
            *(section(measure, _bars(result, measure), "95 % intervals, drawn by page.") for measure in SHOWN),
            section("Faithful, complete, in the right language", table(*_kind_rows(result)) if _judged(result) else ""),
            section(f"Against {result.contestants[0]}", table(_AGAINST, differences) if differences else ""),
            section(
                "Time and tokens of an answer",
                table(*_effort_rows(result)),
                "Time until the answer was whole; tokens of all calls to models, as these counted them.",
            ),
            section("All measures", table(["questions", "contestant", "n", *shown], rows)),
            section(
                "Worst answers", _worst(result.scored), "Judged unfaithful or incomplete first, then the least correct."
            ),
            section("Configuration", configuration(result.config)),
        ],
    )


_AGAINST = ["contestant", "measure", "n", "difference", "95 %", "outside the noise"]


def _tiles(result: AnswerResult) -> str:
    figures = [
        (f"{row.contestant}: {measure}", f"{100 * row.measures[measure].mean:.0f} %", _interval(row, measure))
        for row in result.rows
        if row.language == MEAN
        for measure in SHOWN
        if measure in row.measures
    ]
    return tiles([*figures, ("failed", str(result.failed), "answers"), ("failed", str(result.malformed), "judgements")])


def _bars(result: AnswerResult, measure: str) -> str:
    names = result.contestants
    groups: dict[tuple[str, str, bool], list[Bar]] = {}
    for row in result.rows:
        if measure in row.measures and (measure != "language" or row.variant == ALL):
            bar = Bar(_name(row), row.known[measure], row.measures[measure], names.index(row.contestant))
            # contestants side by side; a single one by language
            variant = row.variant if len(names) > 1 else ""
            groups.setdefault((row.language, variant, row.cross), []).append(bar)
    return legend(names) + bars(list(groups.values())) if groups else ""


def _worst(scored: Sequence[Scored]) -> str:
    def rank(one: Scored) -> tuple[float, float]:
        judged = [one.values[name] for name in ("faithful", "complete", "refusal")]
        return (sum(1.0 if value is None else value for value in judged), one.values["correctness"] or 0.0)

    return "".join(_answer(one) for one in sorted(scored, key=rank)[:WORST])


def _answer(one: Scored) -> str:
    values = ", ".join(f"{name} {value:.2f}" for name, value in one.values.items() if value is not None)
    reasons = "".join(
        f"<p>{escape(j.criterion)}: {escape(j.error or j.category)} {escape(j.reasoning)}</p>" for j in one.judgements
    )
    passages = "".join(f"<p>Passage: {escape(passage[:600])}</p>" for passage in one.answer.passages)
    return (
        f'<details><summary><span class="tag">{escape(one.answer.contestant)}</span>{escape(one.case.question)}'
        f'<span class="rank">{escape(_mistake(one))}</span></summary>'
        f"<p>{escape(values)}</p><p>Answer: {escape(one.answer.text or one.answer.error)}</p>"
        f"<p>Wanted: {escape(one.case.answer or 'a refusal')}</p>{reasons}{passages}</details>"
    )


def _mistake(one: Scored) -> str:
    """What is wrong with it, in a word."""
    if one.answer.error:
        return "failed"
    if one.values["refusal"] == 0:
        return "declined" if one.answerable else "answered, though no page does"
    judged = {"faithful": "unfaithful", "complete": "incomplete"}
    found = [told for name, told in judged.items() if one.values[name] == 0]
    correctness = one.values["correctness"]
    return ", ".join(found) or ("" if correctness is None else f"correctness {correctness:.2f}")


def _name(row: AnswerRow) -> str:
    if row.language in {MEAN, UNANSWERABLE}:
        return "mean of languages" if row.language == MEAN else UNANSWERABLE
    language = f"{row.language} cross" if row.cross else row.language
    return language if row.variant == ALL else f"{language} {VARIANTS.get(row.variant, row.variant)}"


def _cells(row: AnswerRow, measures: Sequence[str]) -> list[str]:
    return [f"{row.measures[m].mean:.2f} {_interval(row, m)}" if m in row.measures else "–" for m in measures]


def _interval(row: AnswerRow, measure: str) -> str:
    one = row.measures[measure]
    return f"{one.low:.2f}–{one.high:.2f}"
