"""The gate: compares a result with a saved baseline, question by question, and decides whether a drop is real.

A baseline has one line per question, so that a review shows what changed. The baseline of retrieval has the ranks of
the first right page, of the first chunk with the evidence, and of the first such chunk that knows its section.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from eval.files import EvaluationError, load_document, save_document
from eval.measure.metrics import CONFIDENCE, Estimate, Ranks
from eval.measure.result import CaseResult, RetrievalResult
from eval.measure.rows import ALL, Pairs, RowDifference, as_matrix
from eval.questions.cases import Case

FORM = "docs-assistant baseline 1"
MADE_BY = "eval gate --update"
MAX_DROP = 0.02
MEASURES = ("page", "chunk", "section")
MANY_RESAMPLES = 10_000  # many rows need precise tails
COMMON = 0.5  # with a smaller share of common questions, the baseline belongs to another set


@dataclass(frozen=True, slots=True)
class KeptValues:
    """The values of one question in a baseline, by measure (None: unknown); `asks` identifies the question."""

    asks: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Baseline:
    """The values by the question's id; `head` says how they were measured."""

    head: Mapping[str, Any]
    questions: Mapping[str, KeptValues]

    def save(self, path: str | Path) -> None:
        """Write the baseline, one line per question. Raises `EvaluationError` if the file can't be written."""
        rows = {id_: [values.asks, *values.values] for id_, values in sorted(self.questions.items())}
        save_document(path, self.head, "questions", rows)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One group's difference to the baseline in one measure. `dropped`: the drop is real and larger than allowed."""

    measure: str
    language: str
    cross: bool
    n: int
    difference: Estimate
    dropped: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """All verdicts. `new` counts questions that the baseline lacks, `gone` those that only the baseline has or that
    changed.
    """

    verdicts: tuple[Verdict, ...]
    n: int
    new: int
    gone: int

    @property
    def passed(self) -> bool:
        """True if nothing dropped."""
        return not any(verdict.dropped for verdict in self.verdicts)


def baseline_of(result: RetrievalResult) -> Baseline:
    """The result as a baseline for later ones."""
    config = result.config
    about = {
        "set": config.get("set", ""),
        "version": config.get("version", ""),
        "recipe": config.get("index", {}).get("recipe", {}),
        "mean": {
            row.language: round(row.measures["rr"].mean, 4)
            for row in result.rows
            if row.variant == ALL and not row.cross
        },
    }
    head = {"form": FORM, "k": result.k, "about": about}
    return Baseline(
        head,
        {case_result.case.id: KeptValues(asks(case_result.case), _ranks(case_result)) for case_result in result.cases},
    )


def load_baseline(path: str | Path, form: str = FORM) -> Baseline:
    """A baseline that `save` wrote. Raises `EvaluationError` if the file is something else."""
    head = load_document(path, form, MADE_BY)
    try:
        questions = {id_: KeptValues(row[0], tuple(row[1:])) for id_, row in head.pop("questions").items()}
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise EvaluationError(f"{path} isn't a baseline of `{MADE_BY}` ({error}).") from error
    return Baseline(head, questions)


def judge(result: RetrievalResult, baseline: Baseline, max_drop: float = MAX_DROP) -> Gate:
    """The result compared with the baseline: by language, for the mean of languages, and for questions across
    languages.

    A drop is real if it is larger than `max_drop` and its 95 % interval over pages lies below 0.
    """
    k = baseline.head.get("k")
    if result.k != k:
        raise EvaluationError(f"The baseline is for k = {k}, the result for k = {result.k}.")
    now = [(case_result.case, [_rr(rank, result.k) for rank in _ranks(case_result)]) for case_result in result.cases]
    pairs = paired(now, MEASURES, baseline, lambda kept: [_rr(rank, result.k) for rank in kept])
    return gate_of(pairs, baseline, len(now), verdicts(pairs.rows(), MEASURES, max_drop))


def gate_of(pairs: Pairs, baseline: Baseline, asked: int, found: tuple[Verdict, ...]) -> Gate:
    """The verdicts with the numbers of questions that were compared and that were not."""
    n = len(pairs.cases)
    return Gate(found, n, asked - n, len(baseline.questions) - n)


Known: TypeAlias = Sequence[float | None]


def paired(
    found: Sequence[tuple[Case, Known]],
    measures: Sequence[str],
    baseline: Baseline,
    values_of: Callable[[Known], Known] = tuple,
) -> Pairs:
    """Each unchanged question with its saved values, as `values_of` reads them. Raises `EvaluationError` for another
    question set.
    """
    saved = baseline.questions
    both = [(case, now, saved[case.id]) for case, now in found if case.id in saved]
    both = [(case, now, before) for case, now, before in both if before.asks == asks(case)]
    total = max(len(found), len(saved))
    if len(both) < COMMON * total:
        raise EvaluationError(
            f"Only {len(both)} of {total} questions are in the baseline: it belongs to another set, or is out of date."
            " Write it again with --update, and have the change reviewed."
        )
    a = [dict(zip(measures, values_of(before.values), strict=True)) for _, _, before in both]
    b = [dict(zip(measures, now, strict=True)) for _, now, _ in both]
    return Pairs([case for case, _, _ in both], measures, as_matrix(a, measures), as_matrix(b, measures))


def verdicts(rows: Sequence[RowDifference], measures: Sequence[str], max_drop: float) -> tuple[Verdict, ...]:
    """A verdict for each measure: each language, their mean, questions across languages, and unanswerable ones."""
    wholes = [row for row in rows if row.variant == ALL]
    return tuple(
        Verdict(
            measure, row.language, row.cross, difference.n, difference.estimate,
            difference.outside_noise and difference.estimate.high < 0 and -difference.estimate.mean > max_drop,
        )
        for measure in measures
        for row in wholes
        if (difference := row.measures.get(measure))
    )  # fmt: skip


def verdicts_together(pairs: Pairs, measures: Sequence[str], max_drop: float) -> tuple[Verdict, ...]:
    """The verdicts, with intervals so wide that all of them together have 95 %.

    A model never gives the same answer twice, and its answers have many measures: otherwise every other run would fail
    without a change.
    """
    number = len(verdicts(pairs.rows(resamples=1), measures, max_drop))
    confidence = 1 - (1 - CONFIDENCE) / max(number, 1)
    return verdicts(pairs.rows(confidence=confidence, resamples=MANY_RESAMPLES), measures, max_drop)


def _ranks(one: CaseResult) -> tuple[int | None, ...]:
    # ranks among the passages that an answer is made from, even if more were measured
    page = round(1 / one.scores.rr) if one.scores.rr else 0
    return page, _first(one.chunks), _first(one.sections)


def _first(ranks: Ranks | None) -> int | None:
    return None if ranks is None else ranks.found[0] if ranks.found else 0


def _rr(rank: float | None, k: int) -> float | None:
    return None if rank is None else 1 / rank if 0 < rank <= k else 0.0


def asks(case: Case) -> str:
    """A fingerprint of everything that identifies the question."""
    text = "\0".join((case.question, case.language, str(case.cross), case.evidence, *case.relevant))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
