"""Verdicts of editors on logged answers: each keeps its question and what its answer was, so that it stays a case of a question set
when the log has forgotten both. Functions get a connection in a transaction.
"""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from app.conversations.log_figures import logged
from app.conversations.records import REFUSED, Given, KeptAnswer, LoggedQuestion, Verdict
from app.conversations.tables import verdicts
from app.core.errors import RequestError
from app.core.language import Vocabulary
from app.text.redaction import redacted


def give(connection: Connection, id_: str, given: Given, now: float, words: Vocabulary | None = None) -> Verdict | None:
    """The verdict that the answer of this id has from now on; None if the log has no such question.

    `words` are those for passwords and addresses. Raises `RequestError` if the log has no text of the question, or if the verdict says nothing
    that a later answer could be compared with.
    """
    if (found := logged(connection, id_)) is None:
        return None
    question, turns = found
    if not question.text:
        raise RequestError(
            "The log has no text of this question (DOCS_QUESTION_LOG=hashed), so no verdict on its answer can be kept."
        )
    verdict = _verdict(question, turns, given, now, words)
    if verdict.answerable and not (verdict.right_pages or verdict.wrong_pages):
        raise RequestError(
            "pages: the answer shows no page, so name the page that answers the question, or say that none does (answerable: false).",
            param="pages",
        )
    take_back(connection, id_)
    connection.execute(insert(verdicts).values(**{**asdict(verdict), "pages": list(verdict.pages)}))
    return verdict


def _verdict(
    question: LoggedQuestion, turns: Sequence[KeptAnswer], given: Given, now: float, words: Vocabulary | None
) -> Verdict:
    *earlier, answer = turns or (None,)
    good_refusal = given.verdict == "good" and question.outcome in REFUSED
    values = asdict(given) | {"answerable": given.answerable and (bool(given.pages) or not good_refusal)}
    return Verdict(
        **values,
        id=question.id,
        created=now,
        asked=question.created,
        digest=question.digest,
        question=question.text,
        answer=redacted(answer.answer, words) if answer else "",
        earlier=[[redacted(one.question, words), redacted(one.answer, words)] for one in earlier if one],
        language=question.language,
        assistant=question.assistant,
        outcome=question.outcome,
        used=list(question.used),
        generation=answer.generation if answer else None,
        statements=answer.verbatim.statements if answer and answer.verbatim else 0,
        unproved=len(answer.unsupported) if answer else 0,
    )


def take_back(connection: Connection, id_: str) -> bool:
    """Delete the verdict on an answer. False if there is none."""
    return connection.execute(delete(verdicts).where(verdicts.c.id == id_)).rowcount > 0


def verdict_on(connection: Connection, id_: str) -> Verdict | None:
    """The verdict on the answer of this id; None if there is none."""
    row = connection.execute(select(verdicts).where(verdicts.c.id == id_)).first()
    return _read(row) if row else None


def all_verdicts(connection: Connection, assistant: str = "") -> Sequence[Verdict]:
    """All verdicts on answers of this assistant, or of all, the newest first."""
    query = select(verdicts).order_by(verdicts.c.created.desc(), verdicts.c.id)
    if assistant:
        query = query.where(verdicts.c.assistant == assistant)
    return [_read(row) for row in connection.execute(query)]


FIELDS = [field.name for field in fields(Verdict)]


def _read(row: Any) -> Verdict:
    return Verdict(**{name: row._mapping[name] for name in FIELDS})  # noqa: SLF001  # its public name
