"""Fits the numbers of `app/fitted.toml`: what was measured of each question, and a logistic regression of it, judged on the set that it
was not fitted on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.assistants.assistant import Assistant
from app.core.fitted import Decision, Fitted, fitted
from eval.files import EvaluationError, Progress, in_parallel
from eval.measure.retrieval import quoted
from eval.questions.cases import Case

STRENGTH: Mapping[Decision, float] = {"sure": 0.03, "stated": 0.1}
"""Of the regularization (C), by sets left out: for `sure`, .03 to 1 were as good, and this has the smallest weights."""
FEWEST = 20


@dataclass(frozen=True, slots=True)
class Example:
    """The features of one quotation or statement, and whether it has the proof or is true."""

    features: Mapping[str, float]
    right: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """One set by the numbers of all others: `auc`, and the share that is right of its most probable examples, as many as `sure` are today,
    beside the share that is right of those (`right_now`).
    """

    name: str
    n: int
    auc: float
    sure: int
    right: float
    right_now: float


async def examples(
    assistant: Assistant, cases: Sequence[Case], parallel: int, progress: Progress | None = None
) -> list[Example]:
    """The quotations for the cases that have evidence, by an assistant without a language model."""
    proven = [case for case in cases if case.evidence]
    answers = await in_parallel(proven, lambda _, case: quoted(assistant, case), parallel, progress)
    return [Example(answer.features, answer.first) for answer in answers if answer.features]


def fit(sets: Mapping[str, Sequence[Example]], decision: Decision) -> tuple[Fitted, list[Figures]]:
    """The model of all sets, which decides as often as today's, and each set by a model of the others.

    Raises `EvaluationError` for fewer than two sets, or one that is too small.
    """
    small = [name for name, rows in sets.items() if len(rows) < FEWEST or len({row.right for row in rows}) < 2]
    if len(sets) < 2 or small:
        raise EvaluationError(
            f"Two or more sets of at least {FEWEST} examples each are needed, right and wrong ones, so that each is judged by the others."
            + (f" Too small: {', '.join(small)}." if small else "")
        )
    now = fitted(decision)
    names = sorted(now.weights)
    figures = [
        _judged(
            name, rows, _fitted([row for other in sets if other != name for row in sets[other]], names, decision), now
        )
        for name, rows in sets.items()
    ]
    everything = [row for rows in sets.values() for row in rows]
    model = _fitted(everything, names, decision)
    sure = sum(now.decides(row.features) for row in everything)
    probabilities = sorted((model.probability(row.features) for row in everything), reverse=True)
    return Fitted(model.weights, model.bias, probabilities[min(max(sure, 1), len(everything)) - 1]), figures


def _judged(name: str, rows: Sequence[Example], model: Fitted, now: Fitted) -> Figures:
    from sklearn.metrics import roc_auc_score

    right = np.array([row.right for row in rows])
    probability = np.array([model.probability(row.features) for row in rows])
    sure = np.array([now.decides(row.features) for row in rows])
    count = int(sure.sum())
    best = np.argsort(-probability, kind="stable")[:count]
    share = float(right[best].mean()) if count else 0.0
    return Figures(
        name,
        len(rows),
        float(roc_auc_score(right, probability)),
        count,
        share,
        float(right[sure].mean()) if count else 0.0,
    )


def _fitted(rows: Sequence[Example], names: Sequence[str], decision: Decision) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    values = np.array([[row.features[name] for name in names] for row in rows])
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread[spread == 0] = 1.0
    model = LogisticRegression(C=STRENGTH[decision], max_iter=1000)
    model.fit((values - mean) / spread, [row.right for row in rows])
    weights = model.coef_[0] / spread
    return Fitted(
        {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)},
        round(float(model.intercept_[0] - (weights * mean).sum()), 3),
        0.5,
    )
