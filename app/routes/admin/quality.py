"""GET /v1/admin/quality: answers by outcome over time, how often answers without a doubt are right, and the kept evaluations by run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from app.conversations.question_log import iso
from app.conversations.records import DOUBTED, SURE, Evaluation, Verdict
from app.core.shares import Share, share
from app.http.bodies import filled, unstored
from app.routes.admin.question_log import LogQuery
from app.routes.keeping import store_of
from app.routes.service import Service

Said = Literal["sure", "doubted"]
By = Literal["verdicts", "ratings", "question_set"]
Counts = Mapping[str, tuple[int, int]]
"""By outcome, how many answers were right, and how many are known to be right or wrong."""


class OutcomesOfDay(TypedDict):
    """The questions of a day in UTC by outcome."""

    day: str
    outcomes: Mapping[str, int]


class Calibration(TypedDict):
    """How many of the answers that were `sure`, or given with a doubt, were right, by one judge."""

    said: Said
    by: Annotated[By, Field(description="Editors; readers; or the expected pages in the last `eval verdicts`.")]
    right: Share


class ByEvidence(TypedDict):
    """Answered questions of the last `eval refusals` with this much evidence, and how many have the right page among their passages."""

    times: Annotated[float, Field(description="At least so many times the needed evidence.")]
    right: Share


class Measured(TypedDict):
    """A mean over questions with its 95 % interval, 0..1."""

    mean: float
    low: float
    high: float


class EvaluationRow(TypedDict):
    """The means of one language, or of all (`mean`), by measure."""

    language: str
    n: int
    measures: Mapping[str, Measured]


class EvaluationBody(TypedDict):
    """The figures of an evaluation that was kept."""

    kind: str
    measured_at: str
    questions: int
    question_set: str
    assistant: str
    generation: int | None
    model: str
    rows: list[EvaluationRow]


class QualityBody(TypedDict):
    """How good answers are, and were."""

    object: Literal["quality"]
    days: list[OutcomesOfDay]
    calibration: list[Calibration]
    evidence: list[ByEvidence]
    runs: Annotated[list[EvaluationBody], Field(description="The kept evaluations, the oldest first.")]


@dataclass(frozen=True)
class Quality:
    """The handler of the route."""

    service: Service

    async def __call__(self, query: Annotated[LogQuery, Query()]) -> Response:
        """The figures of a period; evaluations are those of all times."""
        store = store_of(self.service, "no_log")
        asked = query.asked(store.clock())
        days = await store.outcomes_by_day(asked)
        evaluations = await store.evaluations(assistant=query.assistant)
        judges: Mapping[By, Counts] = {
            "verdicts": _judged(await store.all_verdicts(query.assistant)),
            "ratings": _rated(await store.rated_outcomes(asked)),
            "question_set": _expected(_last("eval verdicts", evaluations)),
        }
        body: QualityBody = {
            "object": "quality",
            "days": [{"day": day, "outcomes": outcomes} for day, outcomes in days.items()],
            "calibration": list(_calibrations(judges)),
            "evidence": _by_evidence(_last("eval refusals", evaluations)),
            "runs": [_run(one) for one in reversed(evaluations)],
        }
        return unstored(body)


def _calibrations(judges: Mapping[By, Counts]) -> Iterator[Calibration]:
    said: Mapping[Said, Sequence[str]] = {"sure": SURE, "doubted": DOUBTED}
    for by, counts in judges.items():
        for name, outcomes in said.items():
            known = [counts[outcome] for outcome in outcomes if outcome in counts]
            yield {"said": name, "by": by, "right": share(sum(right for right, _ in known), sum(of for _, of in known))}


def _counted(judged: Iterator[tuple[str, bool, int]]) -> Counts:
    """The counts of answers with an outcome, whether they are right, and how many there are of them."""
    counts: dict[str, tuple[int, int]] = {}
    for outcome, right, n in judged:
        known, of = counts.get(outcome, (0, 0))
        counts[outcome] = known + n * right, of + n
    return counts


def _judged(verdicts: Sequence[Verdict]) -> Counts:
    return _counted((one.outcome, one.verdict == "good", 1) for one in verdicts)


def _rated(counts: Mapping[tuple[str, str], int]) -> Counts:
    return _counted((outcome, rating == "up", n) for (outcome, rating), n in counts.items())


def _expected(one: Evaluation | None) -> Counts:
    cases = one.cases if one else ()
    return _counted((case["outcome"], _is_right(case["values"]), 1) for case in cases)


def _is_right(values: Mapping[str, Any]) -> bool:
    """True if an answer was expected, and uses a right page."""
    return bool(values["refusal"] and values["page"])


def _last(kind: str, evaluations: Sequence[Evaluation]) -> Evaluation | None:
    return next((one for one in evaluations if one.kind == kind), None)


def _by_evidence(one: Evaluation | None) -> list[ByEvidence]:
    groups = one.figures.get("groups", ()) if one else ()
    return [
        {"times": group["times"], "right": share(round(group["right"] * group["n"]), group["n"])} for group in groups
    ]


def _run(one: Evaluation) -> EvaluationBody:
    rows: list[EvaluationRow] = [
        {"language": row["language"], "n": row["n"], "measures": row["measures"]}
        for row in one.figures["rows"]
        if row["variant"] == "all" and not row["cross"]
    ]
    return filled(EvaluationBody, one, measured_at=iso(one.created), questions=one.n, rows=rows)
