"""The result of a run: one record per question, rows by language and variant, saved as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from eval.errors import EvaluationError
from eval.files import load_document, save_document
from eval.measure.depths import Point, points
from eval.measure.metrics import MEASURES, Ranks, Scores, as_values, title
from eval.measure.quotations import Quotations
from eval.measure.rows import ALL, Outcomes, Row, groups, row_of
from eval.questions.cases import Case

FORM = "docs-assistant retrieval 2"
KIND = "eval retrieval"
NOTHING = Ranks()


@dataclass(frozen=True, slots=True)
class Found:
    """One found passage: its link, whether its page is right, and its scores."""

    link: str
    right: bool
    lexical: float | None
    cosine: float | None
    fused: float


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of the pipeline: its time and a short text of what it changed."""

    step: str
    ms: float
    changes: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one question.

    `ranked` are the addresses of the found pages, best first, each once. `ms` is the time of the whole search,
    `detected` the language that the assistant detected, `fallbacks` the steps that failed, `error` why the search
    failed (empty: it didn't). `in_index` is false if no indexed page is `case.doc`: the question could only be a miss.
    `pages` and `chunks` are the ranks of relevant ones among all that were requested; `chunks` is None if no relevant
    chunk is known. `sections` are the ranks of chunks that also know the section of the evidence. `hits` and `steps`
    are the trace.
    """

    case: Case
    scores: Scores
    ranked: tuple[str, ...]
    ms: float
    detected: str = ""
    in_index: bool = True
    fallbacks: tuple[str, ...] = ()
    error: str = ""
    pages: Ranks = NOTHING
    chunks: Ranks | None = None
    sections: Ranks | None = None
    hits: tuple[Found, ...] = ()
    steps: tuple[StepResult, ...] = ()


@dataclass(frozen=True)
class RetrievalResult:
    """The result of a run. `config` says how it was measured: settings, index, date, model.

    `quotations` describes the answers without a language model; None unless they were measured.
    """

    k: int
    cases: tuple[CaseResult, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    quotations: tuple[Quotations, ...] = ()

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The measures by language and variant, in the order of `groups`."""
        values = as_values([one.scores for one in self.cases])
        cases = [one.case for one in self.cases]
        return tuple(row_of(group, cases, values, MEASURES) for group in groups(cases))

    @property
    def outcomes(self) -> Outcomes:
        """The measures of each question."""
        cases, values = [one.case for one in self.cases], [asdict(one.scores) for one in self.cases]
        titles = {name: title(name, self.k) for name in MEASURES}
        return Outcomes(KIND, cases, values, titles, ("rr",), self.config, self.k)

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """The measures of pages and of chunks at each of `depths.CUTOFFS`, as far as was requested."""
        depth = int(self.config.get("depth", self.k))
        return tuple(
            point
            for level in ("page", "chunk")
            for point in points(level, [(one.case, getattr(one, f"{level}s")) for one in self.cases], depth)
        )

    def row(self, language: str, variant: str = ALL, *, cross: bool = False) -> Row | None:
        """One row, or None if the set has no such questions; `row("mean")` is the mean of languages."""
        return next((r for r in self.rows if (r.language, r.variant, r.cross) == (language, variant, cross)), None)

    @property
    def unmatched(self) -> tuple[CaseResult, ...]:
        """The questions whose document is no indexed page."""
        return tuple(one for one in self.cases if not one.in_index)

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The questions whose search failed; they are misses."""
        return tuple(one for one in self.cases if one.error)

    @property
    def milliseconds(self) -> Mapping[str, float]:
        """Median and 95th percentile of the time of a successful search."""
        times = [one.ms for one in self.cases if not one.error]
        return {name: float(np.percentile(times, p)) for name, p in (("p50", 50), ("p95", 95)) if times}

    @property
    def language_right(self) -> float:
        """Share of the searched questions whose language was detected correctly."""
        right = [one.detected == one.case.language for one in self.cases if not one.error]
        return sum(right) / len(right) if right else 0.0

    def summary(self) -> dict[str, Any]:
        """The whole result without the single questions, as JSON values."""
        return {
            "form": FORM,
            "k": self.k,
            "n": len(self.cases),
            "rows": [asdict(row) for row in self.rows],
            "curve": [asdict(point) for point in self.curve],
            "ms": self.milliseconds,
            "quotations": [asdict(one) for one in self.quotations],
            "language_right": self.language_right,
            "unmatched": sorted({one.case.doc for one in self.unmatched}),
            "unmatched_questions": len(self.unmatched),
            "failed_questions": len(self.failed),
            "config": dict(self.config),
        }

    def save(self, path: str | Path) -> None:
        """Write the whole result as JSON. Raises `EvaluationError` if the file can't be written."""
        save_document(path, self.summary(), "cases", [asdict(one) for one in self.cases])

    def only(self, ids: frozenset[str]) -> RetrievalResult:
        """The same run with these questions alone."""
        return replace(self, cases=tuple(one for one in self.cases if one.case.id in ids))


def load_result(path: str | Path) -> RetrievalResult:
    """A result that `save` wrote. Raises `EvaluationError` if the file is something else."""
    document = load_document(path, FORM, f"{KIND} --out")
    try:
        return TypeAdapter(RetrievalResult).validate_python(document)
    except ValueError as error:
        raise EvaluationError(f"{path} is no result of `eval retrieval --out`: {error}.") from error
