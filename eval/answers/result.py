"""The result of a run of answers: rows by contestant, language and variant, the table of judgements, paired
differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
from eval.measure.compare import enough_to_judge
from eval.measure.metrics import Estimate, intervals
from eval.measure.result import Row, groups

FORM = "docs-assistant answers 1"
UNANSWERABLE = "unanswerable"
CELLS = ("faithful, complete", "faithful, incomplete", "unfaithful, complete", "unfaithful, incomplete", "not judged")


@dataclass(frozen=True, slots=True)
class AnswerRow(Row):
    """A contestant's measures in one group; `known` says how many of the `n` answers have each measure."""

    contestant: str
    known: Mapping[str, int]


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


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """`contestant` minus the first one, over questions where both have the measure."""

    contestant: str
    measure: str
    n: int
    estimate: Estimate
    outside_noise: bool


@dataclass(frozen=True)
class AnswerResult:
    """The result of a run of answers."""

    scored: tuple[Scored, ...]
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def contestants(self) -> tuple[str, ...]:
        """In the order of the command line; the others are compared with the first."""
        return tuple(dict.fromkeys(one.answer.contestant for one in self.scored))

    @cached_property
    def rows(self) -> tuple[AnswerRow, ...]:
        """Contestant by contestant: language by variant, their mean, and the unanswerable questions as one row."""
        found: list[AnswerRow] = []
        for name in self.contestants:
            own = [one for one in self.scored if one.answer.contestant == name]
            answerable = [one for one in own if one.answerable]
            for group in groups([one.case for one in answerable]):
                parts = [[answerable[i] for i in part] for part in group.parts]
                found.append(_row(name, (group.language, group.variant, group.cross), parts))
            if rest := [one for one in own if not one.answerable]:
                found.append(_row(name, (UNANSWERABLE, "all", False), [rest]))
        return tuple(found)

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

    @cached_property
    def differences(self) -> tuple[PairedDifference, ...]:
        """Every other contestant against the first, measure by measure."""
        first, *others = self.contestants
        return tuple(
            difference
            for name in others
            for measure in MEASURES
            if (difference := self._difference(first, name, measure))
        )

    def _difference(self, a: str, b: str, measure: str) -> PairedDifference | None:
        of_a = {one.case.id: one.values[measure] for one in self.scored if one.answer.contestant == a}
        pairs = [
            (one.case.doc or one.case.id, value - before)
            for one in self.scored
            if one.answer.contestant == b
            and (value := one.values[measure]) is not None
            and (before := of_a.get(one.case.id)) is not None
        ]
        if not pairs:
            return None
        clusters = [[page for page, _ in pairs]]
        estimate = intervals([np.array([[gap] for _, gap in pairs])], clusters)[0]
        return PairedDifference(b, measure, len(pairs), estimate, estimate.excludes_zero and enough_to_judge(clusters))

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
            "differences": [asdict(one) for one in self.differences],
        }
        save_document(path, head, "answers", [asdict(one) for one in self.scored])


def load_answers(path: str | Path) -> AnswerResult:
    """A result that `save` wrote. Raises `EvaluationError` if the file is something else."""
    document = load_document(path, FORM, "eval run")
    try:
        scored = TypeAdapter(tuple[Scored, ...]).validate_python(document["answers"])
        return AnswerResult(scored, dict(document["config"]))
    except (ValueError, KeyError) as error:
        raise EvaluationError(f"{path} is no answers.json of `eval run`: {error}.") from error


def _row(name: str, group: tuple[str, str, bool], parts: Sequence[Sequence[Scored]]) -> AnswerRow:
    measures, known = {}, {}
    for measure in MEASURES:
        filled = [[one for one in part if one.values[measure] is not None] for part in parts]
        filled = [part for part in filled if part]
        if filled:
            values = [np.array([[one.values[measure]] for one in part], dtype=np.float64) for part in filled]
            clusters = [[one.case.doc or one.case.id for one in part] for part in filled]
            measures[measure] = intervals(values, clusters)[0]
            known[measure] = sum(map(len, filled))
    language, variant, cross = group
    return AnswerRow(language, variant, cross, sum(map(len, parts)), measures, name, known)


def _kind(one: Scored) -> str:
    faithful, complete = one.values[FAITHFUL], one.values[COMPLETE]
    if faithful is None or complete is None:
        return CELLS[-1]
    return f"{'faithful' if faithful else 'unfaithful'}, {'complete' if complete else 'incomplete'}"
