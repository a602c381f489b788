"""The result of any run: what came of each question, its figures by language and wording, and the file that keeps both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from eval.files import EvaluationError, load_document, save_document
from eval.measure.compare import Comparison, compare
from eval.measure.metrics import MEASURES as OF_PAGES
from eval.measure.rows import ALL, MEAN, Row, as_matrix, groups, row_of
from eval.questions.cases import Case

FORM = "docs-assistant result 1"
RETRIEVAL, CONVERSATIONS, REFUSALS, ANSWERS = "eval retrieval", "eval conversations", "eval refusals", "eval run"
MEASURES: Mapping[str, tuple[str, ...]] = {
    RETRIEVAL: OF_PAGES,
    CONVERSATIONS: OF_PAGES,
    REFUSALS: ("refusal",),
    ANSWERS: (
        "language", "faithful", "complete", "answers", "refusal", "fidelity",
        "correctness", "similarity", "keywords", "entities", "grounding",
    ),
}  # fmt: skip
"""What is measured by each command."""
JUDGED: Mapping[str, tuple[str, ...]] = {
    RETRIEVAL: ("rr",),
    CONVERSATIONS: ("rr",),
    REFUSALS: ("refusal",),
    ANSWERS: ("language", "faithful", "complete", "answers", "refusal", "fidelity", "correctness"),
}
"""The measures by which a question became better or worse."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one question: each measure 0..1, None if it doesn't apply or isn't known.

    `contestant` is who was asked: an assistant, a configuration, a form of the question; empty if there is only one. `ms` is
    the time of the whole call, `error` says why it failed. `details` are plain JSON values, as each kind of run has them.
    """

    case: Case
    contestant: str
    values: Mapping[str, float | None]
    ms: float = 0.0
    error: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answerable(self) -> bool:
        """False for questions that the documentation doesn't answer."""
        return bool(self.case.doc)


@dataclass(frozen=True)
class Result:
    """The result of a run of the command `kind`. `config` says how it was measured: settings, index, date, model.

    `k` is the number of pages that the measures are about, 0 if they are about something else.
    """

    kind: str
    outcomes: tuple[Outcome, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    k: int = 0

    @property
    def measures(self) -> tuple[str, ...]:
        """What is measured of each question."""
        return MEASURES[self.kind]

    @property
    def judged(self) -> tuple[str, ...]:
        """The measures by which a question became better or worse."""
        return JUDGED[self.kind]

    @property
    def contestants(self) -> tuple[str, ...]:
        """In the order of the command line."""
        return tuple(dict.fromkeys(outcome.contestant for outcome in self.outcomes))

    @property
    def base(self) -> str:
        """The contestant that the others are compared with: that of `against`, or else the first one."""
        against = str(self.config.get("against", ""))
        return against if against in self.contestants else self.contestants[0]

    @property
    def judge(self) -> str:
        """The judge with its wording; empty without one. Verdicts of two judges can't be compared."""
        wording = sorted(set(self.config.get("criteria", {}).values()))
        return " ".join(filter(None, [self.config.get("judge", ""), *wording]))

    @property
    def cases(self) -> tuple[Case, ...]:
        """The questions that the first contestant was asked."""
        return tuple(outcome.case for outcome in self.of(self.contestants[0]).outcomes)

    def of(self, contestant: str) -> Result:
        """The outcomes of one contestant alone."""
        return replace(self, outcomes=tuple(outcome for outcome in self.outcomes if outcome.contestant == contestant))

    def only(self, ids: frozenset[str]) -> Result:
        """The same run with these questions alone."""
        return replace(self, outcomes=tuple(outcome for outcome in self.outcomes if outcome.case.id in ids))

    @cached_property
    def rows(self) -> Mapping[str, tuple[Row, ...]]:
        """The figures of each contestant by language and variant, in the order of `groups`."""
        rows: dict[str, tuple[Row, ...]] = {}
        for name in self.contestants:
            own = self.of(name)
            values = as_matrix([outcome.values for outcome in own.outcomes], self.measures)
            rows[name] = tuple(row_of(group, own.cases, values, self.measures) for group in groups(own.cases))
        return rows

    def row(
        self, language: str = MEAN, variant: str = ALL, *, cross: bool = False, contestant: str | None = None
    ) -> Row | None:
        """One row, that of the first contestant unless another is named; None if there are no such questions."""
        rows = self.rows[self.contestants[0] if contestant is None else contestant]
        return next((row for row in rows if (row.language, row.variant, row.cross) == (language, variant, cross)), None)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every other contestant against `base`, over the questions that both were asked."""
        others = [name for name in self.contestants if name != self.base]
        base = self.of(self.base)
        return tuple(compare(base, self.of(name), common=True, names=(self.base, name)) for name in others)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The questions that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.error)

    @property
    def malformed(self) -> int:
        """Number of failed judgements; a later run asks for them again."""
        return sum(
            bool(judged["error"]) for outcome in self.outcomes for judged in outcome.details.get("judgements", ())
        )

    @property
    def milliseconds(self) -> Mapping[str, float]:
        """Median and 95th percentile of the time of a successful call."""
        times = [outcome.ms for outcome in self.outcomes if not outcome.error]
        return {name: float(np.percentile(times, p)) for name, p in (("p50", 50), ("p95", 95)) if times}

    def save(self, path: str | Path, **figures: Any) -> None:
        """Write the result as JSON, with more `figures` for people who read it. Raises `EvaluationError` if it can't."""
        head = {
            "form": FORM,
            "kind": self.kind,
            "k": self.k,
            "config": dict(self.config),
            "failed": len(self.failed),
            "failed_judgements": self.malformed,
            "ms": self.milliseconds,
            "rows": [{"contestant": name, **asdict(row)} for name, rows in self.rows.items() for row in rows],
            "comparisons": [comparison.summary() for comparison in self.comparisons],
            **figures,
        }
        save_document(path, head, "outcomes", [asdict(outcome) for outcome in self.outcomes])


def load_result(path: str | Path) -> Result:
    """A result that `save` wrote. Raises `EvaluationError` if the file is something else, or of an earlier version."""
    made_by = "`, `".join(MEASURES)
    document = load_document(path, FORM, made_by)
    try:
        result = TypeAdapter(Result).validate_python(document)
    except ValueError as error:
        raise EvaluationError(f"{path} is no result of `{made_by}`: {error}.") from error
    if result.kind not in MEASURES or not result.outcomes:
        raise EvaluationError(f"{path} is no result of `{made_by}`.")
    return result
