"""What a run of questions gave: one record per question, rows by language and variant, kept as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from eval.errors import EvaluationError
from eval.files import load_document, save_document
from eval.measure.depths import Point, Ranks, points
from eval.measure.metrics import Estimate, Scores, Values, as_values, estimate
from eval.measure.quotations import Quotations
from eval.questions.cases import Case

FORM = "docs-assistant retrieval 2"
MEAN = "mean"
NOTHING = Ranks()
ALL = "all"


@dataclass(frozen=True, slots=True)
class Found:
    """One passage that was found: its link, whether its page is right, and its scores."""

    link: str
    right: bool
    lexical: float | None
    cosine: float | None
    fused: float


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step of the pipeline did: its time and what it changed, in short."""

    step: str
    ms: float
    changes: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What one question gave.

    `ranked` are the addresses of the pages found, best first, each once. `ms` is the time of the whole
    search, `detected` the language the assistant took the question for, `fallbacks` the steps that failed and
    were done without, `error` what made the search fail (empty: it didn't). `in_index` is false when
    `case.doc` is in no indexed page: the question could only be a miss. `pages` and `chunks` say at which ranks
    something relevant stood among all that was asked for; `chunks` is None where no chunk is known to be relevant. `sections` are those chunks that know the section of the evidence. `hits` and `steps` are the trace.
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


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one row: positions in the results, apart where a mean of means is meant."""

    language: str
    variant: str
    cross: bool
    parts: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        """How many questions."""
        return sum(len(part) for part in self.parts)

    def clusters(self, cases: Sequence[Case]) -> list[list[str]]:
        """The page of each question, part by part: what intervals draw."""
        return [[cases[i].doc for i in part] for part in self.parts]


@dataclass(frozen=True, slots=True)
class Row:
    """The measures of one group, each with its interval; `variant` is "all" for a whole language."""

    language: str
    variant: str
    cross: bool
    n: int
    measures: Mapping[str, Estimate]


def groups(cases: Sequence[Case]) -> tuple[Group, ...]:
    """Language by language its variants, then all of them; then the mean of the languages; then cross questions likewise."""
    plain = _languages(cases, cross=False)
    rows = list(plain)
    if plain:
        wholes = tuple(group.parts[0] for group in plain if group.variant == ALL)
        rows.append(Group(MEAN, ALL, cross=False, parts=wholes))
    return (*rows, *_languages(cases, cross=True))


def _languages(cases: Sequence[Case], *, cross: bool) -> list[Group]:
    found: list[Group] = []
    chosen = [i for i, case in enumerate(cases) if case.cross == cross]
    for language in sorted({cases[i].language for i in chosen}):
        own = tuple(i for i in chosen if cases[i].language == language)
        for variant in sorted({cases[i].variant for i in own} - {""}):
            part = tuple(i for i in own if cases[i].variant == variant)
            found.append(Group(language, variant, cross, (part,)))
        found.append(Group(language, ALL, cross, (own,)))
    return found


def parts_of(values: Values, group: Group) -> list[Values]:
    """The group's rows of the values, part by part."""
    return [values[list(part)] for part in group.parts]


@dataclass(frozen=True)
class RetrievalResult:
    """All that a run gave. `config` holds what it was measured with: settings, index, date, model. `quotations` say what
    is answered without a model, where that was asked for.
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
        return tuple(
            Row(
                group.language,
                group.variant,
                group.cross,
                group.n,
                estimate(parts_of(values, group), group.clusters(cases)),
            )
            for group in groups(cases)
        )

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """The measures at each k of `levels.CUTOFFS`, for pages and for chunks; only as far as was asked for."""
        depth = int(self.config.get("depth", self.k))
        return tuple(
            point
            for level in ("page", "chunk")
            for point in points(level, [(one.case, getattr(one, f"{level}s")) for one in self.cases], depth)
        )

    def row(self, language: str, variant: str = ALL, *, cross: bool = False) -> Row | None:
        """One row, or None when the set has no such questions; `row("mean")` is the mean of the languages."""
        return next((r for r in self.rows if (r.language, r.variant, r.cross) == (language, variant, cross)), None)

    @property
    def unmatched(self) -> tuple[CaseResult, ...]:
        """Those whose document is in no indexed page."""
        return tuple(one for one in self.cases if not one.in_index)

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """Those whose search failed; they count as misses."""
        return tuple(one for one in self.cases if one.error)

    @property
    def milliseconds(self) -> Mapping[str, float]:
        """Median and 95th percentile of the time of a search, where one succeeded."""
        times = [one.ms for one in self.cases if not one.error]
        return {name: float(np.percentile(times, p)) for name, p in (("p50", 50), ("p95", 95)) if times}

    @property
    def language_right(self) -> float:
        """Share of the questions whose language was detected rightly, among those searched."""
        right = [one.detected == one.case.language for one in self.cases if not one.error]
        return sum(right) / len(right) if right else 0.0

    def summary(self) -> dict[str, Any]:
        """Everything but the single questions, as JSON values."""
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
        """Write all of it as JSON. Raises `EvaluationError` where the file can't be written."""
        save_document(path, self.summary(), "cases", [asdict(one) for one in self.cases])

    def only(self, ids: frozenset[str]) -> RetrievalResult:
        """The same run with these questions alone."""
        return replace(self, cases=tuple(one for one in self.cases if one.case.id in ids))


def load_result(path: str | Path) -> RetrievalResult:
    """A result that `save` wrote. Raises `EvaluationError` when the file is something else."""
    document = load_document(path, FORM, "eval retrieval --out")
    try:
        return TypeAdapter(RetrievalResult).validate_python(document)
    except ValueError as error:
        raise EvaluationError(f"{path} is no result of `eval retrieval --out`: {error}.") from error
