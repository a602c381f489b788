"""The result of a run of answers: rows by contestant, language and variant, the table of judgements, paired
differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from eval.answers.effort import Effort, efforts
from eval.answers.score import MEASURES, Scored
from eval.errors import EvaluationError
from eval.files import load_document, save_document
from eval.judge.criteria import COMPLETE, FAITHFUL
from eval.measure.compare import Comparison, compare
from eval.measure.metrics import Estimate, intervals
from eval.measure.rows import Outcomes, Row, as_matrix, groups, row_of

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
    """How many answers of a contestant are of one kind, in the right language and in a wrong one."""

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
        return tuple(dict.fromkeys(one.answer.contestant for one in self.scored))

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
        return replace(self, scored=tuple(one for one in self.scored if one.answer.contestant == contestant))

    def only(self, ids: frozenset[str]) -> AnswerResult:
        """The same run with these questions alone."""
        return replace(self, scored=tuple(one for one in self.scored if one.case.id in ids))

    @property
    def outcomes(self) -> Outcomes:
        """The measures of each question, as the first contestant answered it."""
        own = self.of(self.contestants[0]).scored
        titles = {name: name for name in MEASURES}
        return Outcomes(KIND, [one.case for one in own], [one.values for one in own], titles, JUDGED, self.config)

    @cached_property
    def rows(self) -> tuple[AnswerRow, ...]:
        """Contestant by contestant: language by variant, their mean, and the unanswerable questions as one row."""
        found: list[AnswerRow] = []
        for name in self.contestants:
            own = self.of(name).outcomes
            values = as_matrix(own.values, MEASURES)
            for group in groups(own.cases):
                row = row_of(group, own.cases, values, MEASURES)
                found.append(AnswerRow(**{one.name: getattr(row, one.name) for one in fields(row)}, contestant=name))
        return tuple(found)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every other contestant against `base`, over the questions that both answered."""
        others = [name for name in self.contestants if name != self.base]
        base = self.of(self.base)
        return tuple(compare(base, self.of(name), common=True, names=(self.base, name)) for name in others)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Faithful x complete x language, of the answerable questions that were answered."""
        found = []
        for name in self.contestants:
            own = [
                one for one in self.scored if one.answer.contestant == name and one.answerable and not one.answer.error
            ]
            for kind in CELLS:
                of_kind = [one for one in own if _kind(one) == kind]
                right = sum(one.values["language"] == 1 for one in of_kind)
                found.append(Cell(name, kind, right, len(of_kind) - right))
        return tuple(found)

    @property
    def shares(self) -> tuple[CellShare, ...]:
        """Faithful x complete, kind by kind and contestant by contestant, of the judged answers."""
        judged = [one for one in self.scored if one.answerable and not one.answer.error and _kind(one) != CELLS[-1]]
        own = {name: [one for one in judged if one.answer.contestant == name] for name in self.contestants}
        return tuple(
            CellShare(name, kind, len(had), intervals([values], [[one.case.doc for one in had]])[0])
            for kind in CELLS[:-1]
            for name, had in own.items()
            if had
            for values in [np.array([[_kind(one) == kind] for one in had], dtype=np.float64)]
        )

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """Time and tokens, contestant by contestant."""
        return efforts([one.answer for one in self.scored])

    @property
    def malformed(self) -> int:
        """Number of failed judgements; a later run asks for them again."""
        return sum(bool(j.error) for one in self.scored for j in one.judgements)

    @property
    def failed(self) -> int:
        """Number of failed answers."""
        return sum(bool(one.answer.error) for one in self.scored)

    def save(self, path: str | Path) -> None:
        """Write the whole result as JSON. Raises `EvaluationError` if the file can't be written."""
        head = {
            "form": FORM,
            "config": dict(self.config),
            "failed_answers": self.failed,
            "failed_judgements": self.malformed,
            "efforts": [asdict(one) for one in self.efforts],
            "rows": [asdict(row) for row in self.rows],
            "cells": [asdict(cell) for cell in self.cells],
            "shares": [asdict(share) for share in self.shares],
            "comparisons": [one.summary() for one in self.comparisons],
        }
        save_document(path, head, "answers", [asdict(one) for one in self.scored])


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
        replace(one, answer=replace(one.answer, contestant=name))
        for result, name in zip((a, b), names, strict=True)
        for one in result.of(result.contestants[0]).scored
    ]
    return AnswerResult(tuple(both), {**b.config, "against": names[0]})


def _kind(one: Scored) -> str:
    faithful, complete = one.values[FAITHFUL], one.values[COMPLETE]
    if faithful is None or complete is None:
        return CELLS[-1]
    return f"{'faithful' if faithful else 'unfaithful'}, {'complete' if complete else 'incomplete'}"
