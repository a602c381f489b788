"""The gate for answers: compares the first contestant with a saved baseline, question by question."""

from __future__ import annotations

from pathlib import Path

from eval.answers.result import JUDGED, AnswerResult
from eval.answers.score import Scored
from eval.errors import EvaluationError
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

FORM = "docs-assistant answers baseline 1"


def answer_baseline_of(result: AnswerResult) -> Baseline:
    """The first contestant's answers as a baseline for later ones."""
    about = {name: result.config[name] for name in ("set", "version", "model") if name in result.config}
    about["contestant"] = result.contestants[0]
    head = {"form": FORM, "judge": result.judge, "measures": list(JUDGED), "about": about}
    return Baseline(head, {one.case.id: KeptValues(asks(one.case), _kept(one)) for one in _first(result)})


def load_answer_baseline(path: str | Path) -> Baseline:
    """A baseline that `save` wrote. Raises `EvaluationError` if the file is something else."""
    baseline = load_baseline(path, FORM)
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
    now = [(one.case, _kept(one)) for one in _first(result)]
    pairs = paired(now, JUDGED, baseline)
    return gate_of(pairs, baseline, len(now), verdicts_together(pairs, JUDGED, max_drop))


def _first(result: AnswerResult) -> list[Scored]:
    return [one for one in result.scored if one.answer.contestant == result.contestants[0]]


def _kept(one: Scored) -> tuple[float | None, ...]:
    return tuple(None if (value := one.values[measure]) is None else round(value, 4) for measure in JUDGED)
