"""The gate: compares a result with a saved baseline, question by question, and decides whether a drop is real.

A baseline has one line per question, so that a review shows what changed. The baseline of retrieval has the ranks of
the first right page, of the first chunk with the evidence, and of the first such chunk that knows its section.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.files import EvaluationError, load_document, save_document
from eval.measure.result import RETRIEVAL, Comparison, Outcome, Result
from eval.measure.rows import ALL, CONFIDENCE, Estimate, Pairs, RowDifference, as_matrix
from eval.questions.cases import Case

RANKS_FORM, VALUES_FORM = "docs-assistant baseline 1", "docs-assistant answers baseline 1"
MADE_BY = "eval gate --update"
MAX_DROP = 0.02
PARTS = ("page", "chunk", "section")  # what the baseline of retrieval has ranks of
MANY_RESAMPLES = 10_000  # many rows need precise tails
COMMON = 0.5  # with a smaller share of common questions, the baseline belongs to another set


@dataclass(frozen=True)
class Baseline:
    """Of each question by its id, what identifies it (`asks`) and then its values, None if unknown; `head` says how they were measured."""

    head: Mapping[str, Any]
    questions: Mapping[str, Sequence[Any]]

    def save(self, path: str | Path) -> None:
        """Write the baseline, one line per question. Raises `EvaluationError` if the file can't be written."""
        save_document(path, self.head, "questions", dict(sorted(self.questions.items())))


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


def baseline_of(result: Result) -> Baseline:
    """The first contestant's outcomes as a baseline for later ones."""
    config = result.config
    about = {name: config[name] for name in ("set", "version", "model") if name in config}
    head: dict[str, Any] = {"form": _form(result.kind), "k": result.k, "about": about}
    if result.kind == RETRIEVAL:
        rows = [row for row in result.rows[result.contestants[0]] if row.variant == ALL and not row.cross]
        about["recipe"] = config.get("index", {}).get("recipe", {})
        about["mean"] = {row.language: round(row.measures["rr"].mean, 4) for row in rows}
    else:
        about["contestant"] = result.contestants[0]
        head |= {"judge": result.judge, "measures": list(result.judged)}
    return Baseline(
        head, {outcome.case.id: [asks(outcome.case), *_kept(result, outcome)] for outcome in _first(result)}
    )


def load_baseline(path: str | Path, kind: str) -> Baseline:
    """A baseline of results of this kind. Raises `EvaluationError` if the file is something else."""
    head = load_document(path, _form(kind), MADE_BY)
    questions = head.pop("questions", None)
    if not isinstance(questions, dict) or not all(isinstance(row, list) and row for row in questions.values()):
        raise EvaluationError(f"{path} isn't a baseline of `{MADE_BY}`.")
    return Baseline(head, questions)


def judge(result: Result, baseline: Baseline, max_drop: float = MAX_DROP) -> Gate:
    """The first contestant compared with the baseline, by measure: by language, for the mean of languages, across
    languages, and for questions without an answer. Raises `EvaluationError` for another set, k or judge.

    A drop is real if it is larger than `max_drop` and its 95 % interval over pages lies below 0.
    """
    _refuse_other(result, baseline.head)
    retrieval = result.kind == RETRIEVAL
    measures = PARTS if retrieval else result.judged
    saved = baseline.questions
    first = _first(result)
    both = [(outcome, saved[outcome.case.id]) for outcome in first if outcome.case.id in saved]
    both = [(outcome, kept) for outcome, kept in both if kept[0] == asks(outcome.case)]
    total = max(len(first), len(saved))
    if len(both) < COMMON * total:
        raise EvaluationError(
            f"Only {len(both)} of {total} questions are in the baseline: it belongs to another set, or is out of date."
            " Write it again with --update, and have the change reviewed."
        )

    def read(value: float | None) -> float | None:
        """The value, or the reciprocal of a rank."""
        return value if value is None or not retrieval else 1 / value if 0 < value <= result.k else 0.0

    before, after = (
        as_matrix([dict(zip(measures, map(read, values), strict=True)) for values in side], measures)
        for side in ([kept[1:] for _, kept in both], [_kept(result, outcome) for outcome, _ in both])
    )
    pairs = Pairs([outcome.case for outcome, _ in both], measures, before, after)
    judged = verdicts(pairs.rows(), measures, max_drop) if retrieval else verdicts_together(pairs, measures, max_drop)
    return Gate(judged, len(both), len(first) - len(both), len(saved) - len(both))


def _refuse_other(result: Result, head: Mapping[str, Any]) -> None:
    if head.get("k", 0) != result.k:
        raise EvaluationError(f"The baseline is for k = {head.get('k')}, the result for k = {result.k}.")
    if result.kind == RETRIEVAL:
        return
    if head.get("measures") != list(result.judged):
        raise EvaluationError(f"The baseline has other measures than {', '.join(result.judged)}: use --update.")
    if head.get("judge") != result.judge:
        raise EvaluationError(
            f"The judge of the baseline is {head.get('judge') or 'none'}, that of the answers {result.judge or 'none'}:"
            " their figures can't be compared. Use the same judge, or write the baseline again with --update."
        )


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


def drops(comparison: Comparison, max_drop: float) -> list[Verdict]:
    """The rows that dropped by more than `max_drop`, with intervals so wide that all rows together have 95 %."""
    return [verdict for verdict in verdicts_together(comparison.pairs, comparison.judged, max_drop) if verdict.dropped]


def _form(kind: str) -> str:
    return RANKS_FORM if kind == RETRIEVAL else VALUES_FORM


def _first(result: Result) -> Sequence[Outcome]:
    return result.of(result.contestants[0]).outcomes


def _kept(result: Result, outcome: Outcome) -> tuple[float | None, ...]:
    """The values that a baseline keeps: of answers their measures, of retrieval the ranks of `PARTS`."""
    if result.kind != RETRIEVAL:
        return tuple(None if (value := outcome.values[name]) is None else round(value, 4) for name in result.judged)
    # the rank among the passages that an answer is made from, even if more were measured
    page = round(1 / outcome.values["rr"]) if outcome.values["rr"] else 0
    found = (outcome.details["ranks"][part] for part in PARTS[1:])
    return page, *(None if ranks is None else next(iter(ranks[0]), 0) for ranks in found)


def asks(case: Case) -> str:
    """A fingerprint of everything that identifies the question."""
    text = "\0".join((case.question, case.language, str(case.cross), case.evidence, *case.relevant))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
