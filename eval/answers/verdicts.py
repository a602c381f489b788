"""Answers to the questions that editors gave verdicts on: measured by what is expected, and compared with the answers before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any, Literal

from app.conversations.question_log import iso
from app.conversations.records import REFUSED, Evaluation
from eval.answers.score import Answer, outcome_of
from eval.measure.result import VERDICTS, Comparison, Outcome, Result, compare
from eval.measure.tables import as_table
from eval.questions.cases import Case
from eval.questions.documents import Documents
from eval.questions.verdicts import Judged

Move = Literal["better", "worse", "same"]
EXPECTED = ("doc", "also", "avoid")
"""What of a case says which answer is right."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A case with its answers before and now: how each does what is expected, and whether it became `better` or `worse`."""

    judged: Judged
    before: Outcome
    now: Outcome
    move: Move


def measured(answer: Answer, case: Case, documents: Documents) -> Outcome:
    """The outcome of an answer to a case."""
    values = _values(case, answer.outcome, answer.links, answer.statements, answer.unproved, documents)
    return outcome_of(answer, case, _failed(case) if answer.error else values)


def _failed(case: Case) -> Mapping[str, float | None]:
    return {"refusal": 0.0, "page": 0.0 if case.answerable else None, "proved": None}


def _values(  # all that is known of an answer
    case: Case, outcome: str, links: Sequence[str], statements: int, unproved: int, documents: Documents
) -> Mapping[str, float | None]:
    """`refusal`: it refuses exactly if it should. `page`: a right page is among its sources, or if only wrong ones are known, it doesn't
    begin with one. `proved`: share of its statements.
    """
    refused = outcome in REFUSED
    right = any(documents.fits(doc, link) for doc in case.relevant for link in links)
    if not case.doc:
        right = bool(links) and not any(documents.fits(doc, links[0]) for doc in case.avoid)
    return {
        "refusal": float(refused != case.answerable),
        "page": float(right and not refused) if case.answerable else None,
        "proved": max(0.0, 1 - unproved / statements) if statements and not refused else None,
    }


def before(judged: Judged, last: Evaluation | None, documents: Documents) -> Outcome:
    """The outcome that a case had in the last run; in its first one, and if the verdict has changed, that of the answer of the verdict."""
    case, verdict = judged.case, judged.verdict
    for one in last.cases if last else ():
        if one["id"] == case.id and all(tuple_of(one[name]) == tuple_of(getattr(case, name)) for name in EXPECTED):
            details = {"outcome": one["outcome"], "text": "", "links": []}
            return Outcome(case, verdict.assistant, one["values"], details=details)
    values = _values(case, verdict.outcome, verdict.used, verdict.statements, verdict.unproved, documents)
    details = {"outcome": verdict.outcome, "text": verdict.answer, "links": list(verdict.used)}
    return Outcome(case, verdict.assistant, values, details=details)


def tuple_of(value: str | Sequence[str]) -> tuple[str, ...]:
    """A text, or several of them from JSON, so that they can be compared."""
    return (value,) if isinstance(value, str) else tuple(value)


def compared(
    all_judged: Sequence[Judged], earlier: Sequence[Outcome], result: Result, max_drop: float
) -> Sequence[Compared]:
    """Each case before and now. It is better or worse if the sum of its measures moved by more than `max_drop`; the worse ones come first."""
    one = (
        [replace(outcome, contestant="") for outcome in earlier],
        [replace(outcome, contestant="") for outcome in result.outcomes],
    )
    comparison: Comparison = compare(*(Result(VERDICTS, tuple(outcomes), result.config) for outcomes in one))
    moves = {change.case.id: change.difference for change in comparison.changes}
    found = [
        Compared(judged, was, now, _move(moves.get(judged.case.id, 0.0), max_drop))
        for judged, was, now in zip(all_judged, earlier, result.outcomes, strict=True)
    ]
    return sorted(found, key=lambda one: ("worse", "better", "same").index(one.move))


def _move(difference: float, max_drop: float) -> Move:
    return "same" if abs(difference) <= max_drop else "worse" if difference < 0 else "better"


def compared_text(found: Sequence[Compared], base: Evaluation | None, result: Result) -> str:
    """The table of all cases, and what is compared with what."""
    rows = [
        [
            shorten(one.judged.case.question, 60, placeholder=" …"),
            one.judged.verdict.verdict,
            said(one.before),
            said(one.now),
            one.move,
        ]
        for one in found
    ]
    counts = ", ".join(f"{sum(one.move == move for one in found)} {move}" for move in ("better", "worse", "same"))
    since = (
        f"the run of {iso(base.created)} (generation {base.generation}, model {base.model or 'none'})"
        if base
        else "the answers that the verdicts are about"
    )
    lines = [
        *as_table(["question", "verdict", "before", "now", ""], rows),
        "",
        f"{len(found)} cases: {counts}. Compared with {since}.",
    ]
    if result.failed:
        lines.append(f"FAILED: {len(result.failed)} answers, the first with: {result.failed[0].error}")
    return "\n".join(lines)


def said(outcome: Outcome) -> str:
    """What an answer did, in words."""
    if outcome.error:
        return "failed"
    if outcome.details["outcome"] in REFUSED:
        return "refused"
    page, proved = outcome.values["page"], outcome.values["proved"]
    words = "answered" if page is None else "right page" if page else "wrong page"
    return words if proved is None else f"{words}, {100 * proved:.0f} % proved"


def rows_of(found: Sequence[Compared]) -> list[Mapping[str, Any]]:
    """The cases as JSON values, with both answers as far as they are known."""
    return [
        {
            **{name: getattr(one.judged.case, name) for name in ("id", "language", "question", *EXPECTED)},
            **{name: getattr(one.judged.verdict, name) for name in ("verdict", "reason", "by")},
            "move": one.move,
            **{
                side: {"said": said(outcome), "values": outcome.values, "text": outcome.details["text"], "links": outcome.details["links"]}
                for side, outcome in (("before", one.before), ("now", one.now))
            },
        }
        for one in found
    ]  # fmt: skip


def kept_cases(result: Result) -> list[Mapping[str, Any]]:
    """What the next run compares with: no text of a question or an answer."""
    return [
        {
            "id": outcome.case.id,
            **{name: getattr(outcome.case, name) for name in EXPECTED},
            "values": outcome.values,
            "outcome": outcome.details["outcome"],
        }
        for outcome in result.outcomes
    ]
