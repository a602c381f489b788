"""The gate: compares a result with a saved baseline, question by question, and decides whether a drop is real."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.files import EvaluationError, save_document
from eval.measure.result import ANSWERS, ASKS, FORM, Comparison, Result, compare, same_question
from eval.measure.rows import ALL, CONFIDENCE, Estimate, RowDifference

MAX_DROP = 0.02
MANY_RESAMPLES = 10_000  # many rows need precise tails
COMMON = 0.5  # with a smaller share of common questions, the baseline belongs to another set


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
    """All verdicts about `n` questions. `new` counts those that the baseline lacks, `gone` those that only it has or that changed."""

    verdicts: tuple[Verdict, ...]
    n: int
    new: int
    gone: int

    @property
    def passed(self) -> bool:
        """True if nothing dropped."""
        return not any(verdict.dropped for verdict in self.verdicts)


def save_baseline(result: Result, path: str | Path) -> None:
    """Write what later results are judged by, as a result without details: the judged measures of the first contestant, a question a
    line, so that a review shows what changed. Raises `EvaluationError` if the file can't be written.
    """
    config = {
        name: result.config[name] for name in ("set", "version", "model", "judge", "criteria") if name in result.config
    }
    outcomes = [
        {
            "case": {name: getattr(outcome.case, name) for name in ("id", *ASKS)},
            "contestant": "",
            "values": {name: outcome.values[name] for name in result.judged if name in outcome.values},
        }
        for outcome in result.of(result.contestants[0]).outcomes
    ]
    head = {"form": FORM, "kind": result.kind, "k": result.k, "config": config}
    save_document(path, head, "outcomes", sorted(outcomes, key=lambda one: str(one["case"]["id"])))


def judge(result: Result, baseline: Result, max_drop: float = MAX_DROP) -> Gate:
    """The first contestant compared with the baseline, by measure: by language, for the mean of languages, across
    languages, and for questions without an answer. Raises `EvaluationError` for another set, k or judge.

    A drop is real if it is larger than `max_drop` and its 95 % interval over pages lies below 0.
    """
    first = result.of(result.contestants[0])
    cases = {case.id: case for case in first.cases}
    both = frozenset(one.id for one in baseline.cases if one.id in cases and same_question(one, cases[one.id]))
    total = max(len(cases), len(baseline.cases))
    if len(both) < COMMON * total:
        raise EvaluationError(
            f"Only {len(both)} of {total} questions are in the baseline: it belongs to another set, or is out of date."
            " Write it again with --update, and have the change reviewed."
        )
    comparison = compare(baseline.only(both), first.only(both), names=("the baseline", "the result"))
    judged = verdicts_together(comparison, max_drop) if result.kind == ANSWERS else verdicts(comparison, max_drop)
    return Gate(judged, len(both), len(cases) - len(both), len(baseline.cases) - len(both))


def verdicts(
    comparison: Comparison, max_drop: float, rows: Sequence[RowDifference] | None = None
) -> tuple[Verdict, ...]:
    """A verdict for each measure: each language, their mean, questions across languages, and unanswerable ones."""
    wholes = [row for row in rows or comparison.rows if row.variant == ALL]
    return tuple(
        Verdict(
            measure, row.language, row.cross, difference.n, difference.estimate,
            difference.outside_noise and difference.estimate.high < 0 and -difference.estimate.mean > max_drop,
        )
        for measure in comparison.judged
        for row in wholes
        if (difference := row.measures.get(measure))
    )  # fmt: skip


def verdicts_together(comparison: Comparison, max_drop: float) -> tuple[Verdict, ...]:
    """The verdicts, with intervals so wide that all of them together have 95 %.

    A model never gives the same answer twice, and its answers have many measures: otherwise every other run would fail
    without a change.
    """
    confidence = 1 - (1 - CONFIDENCE) / max(len(verdicts(comparison, max_drop)), 1)
    rows = comparison.pairs.rows(confidence=confidence, resamples=MANY_RESAMPLES)
    return verdicts(comparison, max_drop, rows)


def drops(comparison: Comparison, max_drop: float) -> list[Verdict]:
    """The rows that dropped by more than `max_drop`, with intervals so wide that all rows together have 95 %."""
    return [verdict for verdict in verdicts_together(comparison, max_drop) if verdict.dropped]
