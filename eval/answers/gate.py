"""The gate for answers: the first contestant against a kept baseline, question by question.

Models don't answer twice the same, and many rows are looked at: each row's interval is so wide that all of them together
have 95 %, else every other run without any change would fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eval.answers.result import UNANSWERABLE, AnswerResult
from eval.answers.score import Scored
from eval.errors import EvaluationError
from eval.measure.compare import enough_to_judge
from eval.measure.gate import MAX_DROP, Gate, Verdict, asks, paired, save_lines
from eval.measure.metrics import CONFIDENCE, intervals
from eval.measure.result import ALL, groups
from eval.questions.cases import read_text

FORM = "docs-assistant answers baseline 1"
MEASURES = ("language", "faithful", "complete", "answers", "refusal", "fidelity", "correctness")
RESAMPLES = 10_000  # so many rows make thin tails


@dataclass(frozen=True, slots=True)
class Standing:
    """What a baseline has of one question: which question it was, and its values in the order of `MEASURES`."""

    asks: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class AnswerBaseline:
    """The standings by the question's id; `judge` is the model and the wording that judged them."""

    judge: str
    standings: Mapping[str, Standing]
    about: Mapping[str, Any]

    def save(self, path: str | Path) -> None:
        """Write it, a question a line. Raises `EvaluationError` where the file can't be written."""
        head = {"form": FORM, "judge": self.judge, "measures": MEASURES, "about": dict(self.about)}
        save_lines(path, head, {id_: [one.asks, *one.values] for id_, one in self.standings.items()})


def answer_baseline_of(result: AnswerResult) -> AnswerBaseline:
    """The first contestant's answers as a baseline for later ones."""
    own = _first(result)
    about = {name: result.config[name] for name in ("set", "version", "model") if name in result.config}
    about["contestant"] = result.contestants[0]
    return AnswerBaseline(_judge(result), {one.case.id: _standing(one) for one in own}, about)


def load_answer_baseline(path: str | Path) -> AnswerBaseline:
    """A baseline that `save` wrote. Raises `EvaluationError` when the file is something else."""
    path = Path(path)
    try:
        document = json.loads(read_text(path))
        if document["form"] != FORM or tuple(document["measures"]) != MEASURES:
            raise EvaluationError(f"{path} has the form {document['form']!r}, needed is {FORM!r}: write it anew.")
        rows = {id_: Standing(row[0], tuple(row[1:])) for id_, row in document["questions"].items()}
        return AnswerBaseline(str(document["judge"]), rows, dict(document["about"]))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise EvaluationError(f"{path} is no baseline of answers by `eval gate --update` ({error}).") from error


def judge_answers(result: AnswerResult, baseline: AnswerBaseline, max_drop: float = MAX_DROP) -> Gate:
    """The first contestant against the baseline, by measure: per language, for their mean, across languages, and for
    questions without an answer. Raises `EvaluationError` for another set or another judge.
    """
    if _judge(result) != baseline.judge:
        raise EvaluationError(
            f"The baseline was judged by {baseline.judge or 'nobody'}, the answers by {_judge(result) or 'nobody'}:"
            " their figures can't be compared. Judge alike, or write the baseline anew with --update."
        )
    own = _first(result)
    pairs = paired(own, baseline.standings)
    rows = list(_rows(pairs))
    verdicts = tuple(_verdict(row, 1 - (1 - CONFIDENCE) / len(rows), max_drop) for row in rows)
    return Gate(verdicts, len(pairs), len(own) - len(pairs), len(baseline.standings) - len(pairs))


@dataclass(frozen=True, slots=True)
class _Row:
    measure: str
    language: str
    cross: bool
    gaps: Sequence[Sequence[float]]
    clusters: Sequence[Sequence[str]]


def _rows(pairs: Sequence[tuple[Scored, Standing]]) -> Iterator[_Row]:
    for position, measure in enumerate(MEASURES):
        known = [
            (one, now - before)
            for one, standing in pairs
            if (now := one.values[measure]) is not None and (before := standing.values[position]) is not None
        ]
        answerable = [(one, gap) for one, gap in known if one.answerable]
        for group in groups([one.case for one, _ in answerable]):
            if group.variant == ALL:
                parts = [[answerable[i] for i in part] for part in group.parts]
                yield _row(measure, group.language, parts, cross=group.cross)
        if rest := [(one, gap) for one, gap in known if not one.answerable]:
            yield _row(measure, UNANSWERABLE, [rest])


def _row(measure: str, language: str, parts: Sequence[Sequence[tuple[Scored, float]]], *, cross: bool = False) -> _Row:
    gaps = [[gap for _, gap in part] for part in parts]
    clusters = [[one.case.doc or one.case.id for one, _ in part] for part in parts]
    return _Row(measure, language, cross, gaps, clusters)


def _verdict(row: _Row, confidence: float, max_drop: float) -> Verdict:
    values = [np.array(part, dtype=np.float64)[:, None] for part in row.gaps]
    one = intervals(values, row.clusters, resamples=RESAMPLES, confidence=confidence)[0]
    dropped = enough_to_judge(row.clusters) and one.high < 0 and -one.mean > max_drop
    return Verdict(row.measure, row.language, row.cross, sum(map(len, row.gaps)), one, dropped)


def _first(result: AnswerResult) -> list[Scored]:
    return [one for one in result.scored if one.answer.contestant == result.contestants[0]]


def _judge(result: AnswerResult) -> str:
    wording = sorted(set(result.config.get("criteria", {}).values()))
    return " ".join(filter(None, [result.config.get("judge", ""), *wording]))


def _standing(one: Scored) -> Standing:
    values = (one.values[measure] for measure in MEASURES)
    return Standing(asks(one.case), tuple(None if value is None else round(value, 4) for value in values))
