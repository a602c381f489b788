"""The gate: compares a result with a saved baseline, question by question, and decides whether a drop is real.

A baseline has one line per question, so that a review shows what changed. The baseline of retrieval has the ranks of
the first right page, of the first chunk with the evidence, and of the first such chunk that knows its section.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from eval.errors import EvaluationError
from eval.files import load_document, save_document
from eval.measure.compare import enough_to_judge
from eval.measure.metrics import CONFIDENCE, RESAMPLES, Estimate, Ranks, intervals
from eval.measure.result import ALL, CaseResult, RetrievalResult, groups
from eval.questions.cases import Case

FORM = "docs-assistant baseline 1"
MADE_BY = "eval gate --update"
MAX_DROP = 0.02
MEASURES = ("page", "chunk", "section")
UNANSWERABLE = "unanswerable"
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
        rows = {id_: [one.asks, *one.values] for id_, one in sorted(self.questions.items())}
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
    return Baseline(head, {one.case.id: KeptValues(asks(one.case), _ranks(one)) for one in result.cases})


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
    pairs = paired(result.cases, baseline)
    gaps = {
        measure: [
            (one.case, _rr(now, result.k) - _rr(before, result.k))
            for one, kept in pairs
            if (now := _ranks(one)[i]) is not None and (before := kept.values[i]) is not None
        ]
        for i, measure in enumerate(MEASURES)
    }
    verdicts = tuple(_verdict(row, max_drop, CONFIDENCE, RESAMPLES) for row in rows_of(gaps))
    return Gate(verdicts, len(pairs), len(result.cases) - len(pairs), len(baseline.questions) - len(pairs))


class Asked(Protocol):
    """The measured values of one question."""

    @property
    def case(self) -> Case:
        """The question."""
        ...


A = TypeVar("A", bound=Asked)
Gaps = Mapping[str, Sequence[tuple[Case, float]]]


def paired(found: Sequence[A], baseline: Baseline) -> list[tuple[A, KeptValues]]:
    """Each unchanged question with its saved values. Raises `EvaluationError` for another question set."""
    kept = baseline.questions
    pairs = [(one, kept[one.case.id]) for one in found if one.case.id in kept]
    pairs = [(one, before) for one, before in pairs if before.asks == asks(one.case)]
    total = max(len(found), len(kept))
    if len(pairs) < COMMON * total:
        raise EvaluationError(
            f"Only {len(pairs)} of {total} questions are in the baseline: it belongs to another set, or is out of date."
            " Write it again with --update, and have the change reviewed."
        )
    return pairs


@dataclass(frozen=True, slots=True)
class Row:
    """The differences of one measure in one group of questions, by part, with the page of each."""

    measure: str
    language: str
    cross: bool
    gaps: Sequence[Sequence[float]]
    clusters: Sequence[Sequence[str]]


def rows_of(gaps: Gaps) -> Iterator[Row]:
    """Rows by measure: each language, the mean of languages, questions across languages, and unanswerable ones."""
    for measure, known in gaps.items():
        answerable = [(case, gap) for case, gap in known if case.doc]
        parts = [
            (group.language, group.cross, [[answerable[i] for i in part] for part in group.parts])
            for group in groups([case for case, _ in answerable])
            if group.variant == ALL
        ]
        rest = [(case, gap) for case, gap in known if not case.doc]
        for language, cross, own in [*parts, *([(UNANSWERABLE, False, [rest])] if rest else [])]:
            clusters = [[case.doc or case.id for case, _ in part] for part in own]
            yield Row(measure, language, cross, [[gap for _, gap in part] for part in own], clusters)


def verdicts_together(gaps: Gaps, max_drop: float, resamples: int) -> tuple[Verdict, ...]:
    """The verdicts, with intervals so wide that all rows together have 95 %."""
    rows = list(rows_of(gaps))
    return tuple(_verdict(row, max_drop, 1 - (1 - CONFIDENCE) / len(rows), resamples) for row in rows)


def _verdict(row: Row, max_drop: float, confidence: float, resamples: int) -> Verdict:
    values = [np.array(part, dtype=np.float64)[:, None] for part in row.gaps]
    one = intervals(values, row.clusters, resamples=resamples, confidence=confidence)[0]
    dropped = enough_to_judge(row.clusters) and one.high < 0 and -one.mean > max_drop
    return Verdict(row.measure, row.language, row.cross, sum(map(len, row.gaps)), one, dropped)


def _ranks(one: CaseResult) -> tuple[int | None, ...]:
    # ranks among the passages that an answer is made from, even if more were measured
    page = round(1 / one.scores.rr) if one.scores.rr else 0
    return page, _first(one.chunks), _first(one.sections)


def _first(ranks: Ranks | None) -> int | None:
    return None if ranks is None else ranks.found[0] if ranks.found else 0


def _rr(rank: float, k: int) -> float:
    return 1 / rank if 0 < rank <= k else 0.0


def asks(case: Case) -> str:
    """A fingerprint of everything that identifies the question."""
    text = "\0".join((case.question, case.language, str(case.cross), case.evidence, *case.relevant))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
