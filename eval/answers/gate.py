"""The gate for answers: compares the first contestant with a saved baseline, question by question.

A model never gives the same answer twice, and there are many rows. Intervals are so wide that all of them together have
95 %; otherwise every other run would fail without a change.
"""

from __future__ import annotations

from pathlib import Path

from eval.answers.result import AnswerResult
from eval.answers.score import Scored
from eval.errors import EvaluationError
from eval.measure.gate import MAX_DROP, Baseline, Gate, KeptValues, asks, load_baseline, paired, verdicts_together

FORM = "docs-assistant answers baseline 1"
MEASURES = ("language", "faithful", "complete", "answers", "refusal", "fidelity", "correctness")
RESAMPLES = 10_000  # many rows need precise tails


def answer_baseline_of(result: AnswerResult) -> Baseline:
    """The first contestant's answers as a baseline for later ones."""
    about = {name: result.config[name] for name in ("set", "version", "model") if name in result.config}
    about["contestant"] = result.contestants[0]
    head = {"form": FORM, "judge": _judge(result), "measures": list(MEASURES), "about": about}
    return Baseline(head, {one.case.id: _kept(one) for one in _first(result)})


def load_answer_baseline(path: str | Path) -> Baseline:
    """A baseline that `save` wrote. Raises `EvaluationError` if the file is something else."""
    baseline = load_baseline(path, FORM)
    if baseline.head.get("measures") != list(MEASURES):
        raise EvaluationError(f"{path} has other measures than {', '.join(MEASURES)}: write it again with --update.")
    return baseline


def judge_answers(result: AnswerResult, baseline: Baseline, max_drop: float = MAX_DROP) -> Gate:
    """The first contestant against the baseline, by measure: per language, for their mean, across languages, and for
    questions without an answer. Raises `EvaluationError` for another set or another judge.
    """
    judge = baseline.head.get("judge")
    if _judge(result) != judge:
        raise EvaluationError(
            f"The judge of the baseline is {judge or 'none'}, that of the answers {_judge(result) or 'none'}:"
            " their figures can't be compared. Use the same judge, or write the baseline again with --update."
        )
    own = _first(result)
    pairs = paired(own, baseline)
    gaps = {
        measure: [
            (one.case, now - before)
            for one, kept in pairs
            if (now := one.values[measure]) is not None and (before := kept.values[i]) is not None
        ]
        for i, measure in enumerate(MEASURES)
    }
    verdicts = verdicts_together(gaps, max_drop, RESAMPLES)
    return Gate(verdicts, len(pairs), len(own) - len(pairs), len(baseline.questions) - len(pairs))


def _first(result: AnswerResult) -> list[Scored]:
    return [one for one in result.scored if one.answer.contestant == result.contestants[0]]


def _judge(result: AnswerResult) -> str:
    wording = sorted(set(result.config.get("criteria", {}).values()))
    return " ".join(filter(None, [result.config.get("judge", ""), *wording]))


def _kept(one: Scored) -> KeptValues:
    values = (one.values[measure] for measure in MEASURES)
    return KeptValues(asks(one.case), tuple(None if value is None else round(value, 4) for value in values))
