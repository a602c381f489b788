"""Time and tokens of answers, by contestant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.answers.types import Answer


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
