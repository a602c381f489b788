"""Cases of a question set that verdicts of editors are made into: what a later answer should do, and the row that says so in a file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.conversations.question_log import opened_log
from app.conversations.records import Verdict
from app.core.settings import Settings
from app.core.turn import Message
from app.index import directory_of
from eval.files import EvaluationError, fingerprint
from eval.questions.cases import Case

KIND = "verdict"
"""The variant of these questions."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with the verdict that it was made of."""

    case: Case
    verdict: Verdict


def judged_cases(settings: Settings, assistant: str = "") -> Sequence[Judged]:
    """The cases of all verdicts on answers of this assistant, or of all; of several on one question, the newest is meant.

    Raises `EvaluationError` if there is none, and `RequestError` or a `DatabaseError` if there is no log.
    """
    from app.conversations.verdicts import all_verdicts  # SQLAlchemy, which other commands don't need

    with opened_log(settings, directory_of(settings)) as log:
        found = log.read(all_verdicts, assistant)
    newest_last = (Judged(case_of(verdict), verdict) for verdict in reversed(found))
    cases = {judged.case.id: judged for judged in newest_last}
    if not cases:
        raise EvaluationError(
            "No editor has given a verdict on an answer yet. Open a question in /admin/questions, and say whether its answer is good."
        )
    return list(cases.values())


def case_of(verdict: Verdict) -> Case:
    """The case of a verdict. Its id is the same for the same question in the same conversation."""
    doc, *also = verdict.right_pages if verdict.answerable and verdict.right_pages else ("",)
    return Case(
        id=fingerprint(verdict.digest, *(text for pair in verdict.earlier for text in pair))[:12],
        language=verdict.language,
        question=verdict.question,
        doc=doc,
        variant=KIND,
        also=tuple(also),
        avoid=tuple(verdict.wrong_pages) if verdict.answerable else (),
        earlier=tuple(
            Message(role, text)
            for pair in verdict.earlier
            for role, text in zip(("user", "assistant"), pair, strict=True)
            if text
        ),
    )


def row_of(case: Case) -> Mapping[str, Any]:
    """The row of a file that has this case; one without a page is read as an unanswerable question."""
    asked = {"messages": [asdict(one) for one in case.messages]} if case.earlier else {}
    row = {"id": case.id, "lang": case.language, "question": case.question, **asked}
    if not case.answerable:
        return row | {"kind": case.variant}
    pages = {"doc": case.doc, "also": case.also, "avoid": case.avoid}
    return row | {"variant": case.variant} | {name: value for name, value in pages.items() if value}
