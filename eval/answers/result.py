"""The result of a run of answers: rows by contestant, language and variant, the table of judgements, paired
differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from eval.answers.score import MEASURES, Answer, Scored
from eval.files import EvaluationError, load_document, save_document
from eval.judge import COMPLETE, FAITHFUL
from eval.measure.compare import Comparison, compare, comparison_text
from eval.measure.gate import (
    MAX_DROP,
    Baseline,
    Gate,
    KeptValues,
    asks,
    gate_of,
    load_baseline,
    paired,
    verdicts_together,
)
from eval.measure.metrics import Estimate, intervals
from eval.measure.rows import Outcomes, Row, as_matrix, groups, row_of
from eval.measure.tables import as_table, row_name

FORM = "docs-assistant answers 1"
KIND = "eval run"
JUDGED = ("language", "faithful", "complete", "answers", "refusal", "fidelity", "correctness")
CELLS = ("faithful, complete", "faithful, incomplete", "unfaithful, complete", "unfaithful, incomplete", "not judged")


@dataclass(frozen=True, slots=True)
class AnswerRow(Row):
    """A contestant's measures in one group."""

    contestant: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """Numbers of answers of a contestant of one kind, in the right language and in a wrong one."""

    contestant: str
    kind: str
    right_language: int
    wrong_language: int


@dataclass(frozen=True, slots=True)
class CellShare:
    """The share of a contestant's `n` judged answers that is of one kind."""

    contestant: str
    kind: str
    n: int
    estimate: Estimate


@dataclass(frozen=True)
class AnswerResult:
    """The result of a run of answers."""

    scored: tuple[Scored, ...]
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def contestants(self) -> tuple[str, ...]:
        """In the order of the command line; the others are compared with the first."""
        return tuple(dict.fromkeys(scored.answer.contestant for scored in self.scored))

    @property
    def base(self) -> str:
        """The contestant that the others are compared with: that of --against, or else the first one."""
        against = str(self.config.get("against", ""))
        return against if against in self.contestants else self.contestants[0]

    @property
    def judge(self) -> str:
        """The judge with its wording; empty without one. Verdicts of two judges can't be compared."""
        wording = sorted(set(self.config.get("criteria", {}).values()))
        return " ".join(filter(None, [self.config.get("judge", ""), *wording]))

    def of(self, contestant: str) -> AnswerResult:
        """The answers of one contestant alone."""
        return replace(self, scored=tuple(scored for scored in self.scored if scored.answer.contestant == contestant))

    def only(self, ids: frozenset[str]) -> AnswerResult:
        """The same run with these questions alone."""
        return replace(self, scored=tuple(scored for scored in self.scored if scored.case.id in ids))

    @property
    def outcomes(self) -> Outcomes:
        """The measures of each question, as the first contestant answered it."""
        own = self.of(self.contestants[0]).scored
        titles = {name: name for name in MEASURES}
        return Outcomes(
            KIND, [scored.case for scored in own], [scored.values for scored in own], titles, JUDGED, self.config
        )

    @cached_property
    def rows(self) -> tuple[AnswerRow, ...]:
        """Contestant by contestant: language by variant, their mean, and the unanswerable questions as one row."""
        rows: list[AnswerRow] = []
        for name in self.contestants:
            own = self.of(name).outcomes
            values = as_matrix(own.values, MEASURES)
            for group in groups(own.cases):
                row = row_of(group, own.cases, values, MEASURES)
                rows.append(
                    AnswerRow(
                        **{attribute.name: getattr(row, attribute.name) for attribute in fields(row)}, contestant=name
                    )
                )
        return tuple(rows)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every other contestant against `base`, over the questions that both answered."""
        others = [name for name in self.contestants if name != self.base]
        base = self.of(self.base)
        return tuple(compare(base, self.of(name), common=True, names=(self.base, name)) for name in others)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Faithful x complete x language, of the answerable questions that were answered."""
        cells = []
        for name in self.contestants:
            own = [
                scored
                for scored in self.scored
                if scored.answer.contestant == name and scored.answerable and not scored.answer.error
            ]
            for kind in CELLS:
                of_kind = [scored for scored in own if _kind(scored) == kind]
                right = sum(scored.values["language"] == 1 for scored in of_kind)
                cells.append(Cell(name, kind, right, len(of_kind) - right))
        return tuple(cells)

    @property
    def shares(self) -> tuple[CellShare, ...]:
        """Faithful x complete, kind by kind and contestant by contestant, of the judged answers."""
        judged = [
            scored
            for scored in self.scored
            if scored.answerable and not scored.answer.error and _kind(scored) != CELLS[-1]
        ]
        own = {name: [scored for scored in judged if scored.answer.contestant == name] for name in self.contestants}
        return tuple(
            CellShare(name, kind, len(had), intervals([values], [[scored.case.doc for scored in had]])[0])
            for kind in CELLS[:-1]
            for name, had in own.items()
            if had
            for values in [np.array([[_kind(scored) == kind] for scored in had], dtype=np.float64)]
        )

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """Time and tokens, contestant by contestant."""
        return efforts([scored.answer for scored in self.scored])

    @property
    def malformed(self) -> int:
        """Number of failed judgements; a later run asks for them again."""
        return sum(bool(j.error) for scored in self.scored for j in scored.judgements)

    @property
    def failed(self) -> int:
        """Number of failed answers."""
        return sum(bool(scored.answer.error) for scored in self.scored)

    def save(self, path: str | Path) -> None:
        """Write the whole result as JSON. Raises `EvaluationError` if the file can't be written."""
        head = {
            "form": FORM,
            "config": dict(self.config),
            "failed_answers": self.failed,
            "failed_judgements": self.malformed,
            "efforts": [asdict(effort) for effort in self.efforts],
            "rows": [asdict(row) for row in self.rows],
            "cells": [asdict(cell) for cell in self.cells],
            "shares": [asdict(share) for share in self.shares],
            "comparisons": [comparison.summary() for comparison in self.comparisons],
        }
        save_document(path, head, "answers", [asdict(scored) for scored in self.scored])


def load_answers(path: str | Path) -> AnswerResult:
    """A result that `save` wrote. Raises `EvaluationError` if the file is something else."""
    document = load_document(path, FORM, KIND)
    try:
        scored = TypeAdapter(tuple[Scored, ...]).validate_python(document["answers"])
        return AnswerResult(scored, dict(document["config"]))
    except (ValueError, KeyError) as error:
        raise EvaluationError(f"{path} is no answers.json of `eval run`: {error}.") from error


def side_by_side(a: AnswerResult, b: AnswerResult, names: tuple[str, str]) -> AnswerResult:
    """The answers of the first contestant of each, under these names; the second is compared with the first.

    Raises `EvaluationError` if different judges judged them.
    """
    if a.judge != b.judge:
        raise EvaluationError(
            f"The judge of A is {a.judge or 'none'}, that of B {b.judge or 'none'}: their figures can't be compared."
            " `eval run --against A.json` measures both in the same way."
        )
    both = [
        replace(scored, answer=replace(scored.answer, contestant=name))
        for result, name in zip((a, b), names, strict=True)
        for scored in result.of(result.contestants[0]).scored
    ]
    return AnswerResult(tuple(both), {**b.config, "against": names[0]})


def _kind(one: Scored) -> str:
    faithful, complete = one.values[FAITHFUL], one.values[COMPLETE]
    if faithful is None or complete is None:
        return CELLS[-1]
    return f"{'faithful' if faithful else 'unfaithful'}, {'complete' if complete else 'incomplete'}"


@dataclass(frozen=True, slots=True)
class Effort:
    """The time until a contestant's whole answer, and the mean tokens of an answer (None: not counted).

    `n` is the number of answers without those that failed. Answers without token counts are left out of the means.
    """

    contestant: str
    n: int
    ms_median: float
    ms_p95: float
    prompt_tokens: float | None
    completion_tokens: float | None


def efforts(answers: Sequence[Answer]) -> tuple[Effort, ...]:
    """The contestants in their order, without those that never answered."""
    names = dict.fromkeys(answer.contestant for answer in answers)
    own = {name: [a for a in answers if a.contestant == name and not a.error] for name in names}
    return tuple(_effort(name, had) for name, had in own.items() if had)


def _effort(name: str, answers: Sequence[Answer]) -> Effort:
    median, p95 = np.percentile([answer.ms for answer in answers], [50, 95])
    counted = [answer for answer in answers if answer.prompt_tokens]
    prompt, completion = (
        float(np.mean(tokens)) if counted else None
        for tokens in ([a.prompt_tokens for a in counted], [a.completion_tokens for a in counted])
    )
    return Effort(name, len(answers), float(median), float(p95), prompt, completion)


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
        errors = [scored.answer.error for scored in result.scored if scored.answer.error]
        lines += [f"The first error: {errors[0]}"] if errors else []
    return "\n".join(lines)


def _failed_steps(result: AnswerResult) -> list[str]:
    """The steps that failed, so that an answer had to do without them, by contestant."""
    counts = Counter(
        (scored.answer.contestant, step) for scored in result.scored for step in scored.answer.failed_steps
    )
    return [
        f"{name}: {step} failed on {n} questions, which were answered without it." for (name, step), n in counts.items()
    ]


def kind_table(result: AnswerResult) -> tuple[list[str], list[list[str]]]:
    """Returns the table of faithful and complete answers in the right language; no rows if nothing was judged."""
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
        [effort.contestant, str(effort.n), f"{effort.ms_median:.0f}", f"{effort.ms_p95:.0f}",
         *("–" if tokens is None else f"{tokens:.0f}" for tokens in (effort.prompt_tokens, effort.completion_tokens))]
        for effort in result.efforts
    ]  # fmt: skip
    return ["effort of an answer", "n", "ms, median", "ms, p95", "tokens in", "tokens out"], rows


def answer_cells(row: AnswerRow, measures: Sequence[str]) -> list[str]:
    """Returns the cells of these measures with their intervals, a dash for an unknown one."""
    return [f"{row.measures[m].mean:.2f} {_interval(row, m)}" if m in row.measures else "–" for m in measures]


def _interval(row: AnswerRow, measure: str) -> str:
    estimate = row.measures[measure]
    return f"{estimate.low:.2f}–{estimate.high:.2f}"


BASELINE_FORM = "docs-assistant answers baseline 1"


def answer_baseline_of(result: AnswerResult) -> Baseline:
    """The first contestant's answers as a baseline for later ones."""
    about = {name: result.config[name] for name in ("set", "version", "model") if name in result.config}
    about["contestant"] = result.contestants[0]
    head = {"form": BASELINE_FORM, "judge": result.judge, "measures": list(JUDGED), "about": about}
    return Baseline(head, {scored.case.id: KeptValues(asks(scored.case), _kept(scored)) for scored in _first(result)})


def load_answer_baseline(path: str | Path) -> Baseline:
    """A baseline that `save` wrote. Raises `EvaluationError` if the file is something else."""
    baseline = load_baseline(path, BASELINE_FORM)
    if baseline.head.get("measures") != list(JUDGED):
        raise EvaluationError(f"{path} has other measures than {', '.join(JUDGED)}: write it again with --update.")
    return baseline


def judge_answers(result: AnswerResult, baseline: Baseline, max_drop: float = MAX_DROP) -> Gate:
    """The first contestant against the baseline, by measure: per language, for their mean, across languages, and for
    questions without an answer. Raises `EvaluationError` for another set or another judge.
    """
    judge = baseline.head.get("judge")
    if result.judge != judge:
        raise EvaluationError(
            f"The judge of the baseline is {judge or 'none'}, that of the answers {result.judge or 'none'}:"
            " their figures can't be compared. Use the same judge, or write the baseline again with --update."
        )
    now = [(scored.case, _kept(scored)) for scored in _first(result)]
    pairs = paired(now, JUDGED, baseline)
    return gate_of(pairs, baseline, len(now), verdicts_together(pairs, JUDGED, max_drop))


def _first(result: AnswerResult) -> list[Scored]:
    return [scored for scored in result.scored if scored.answer.contestant == result.contestants[0]]


def _kept(one: Scored) -> tuple[float | None, ...]:
    return tuple(None if (value := one.values[measure]) is None else round(value, 4) for measure in JUDGED)
