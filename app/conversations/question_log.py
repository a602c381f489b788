"""The question log: what was asked, redacted before it is written, and what was found; for reports of what the docs lack."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, select

from app.conversations.queries import insert_new
from app.conversations.records import Found, KeptAnswer, LoggedQuestion
from app.conversations.tables import question_key, questions
from app.text.analysis import fold
from app.text.redaction import redacted

UNLOGGED = frozenset({"smalltalk", "cancelled"})
"""Outcomes that say nothing of the documentation."""
AT_ONCE = 5_000
"""Rows that are read at once."""
FIELDS = {field.name for field in dataclasses.fields(LoggedQuestion)}


@dataclass(frozen=True)
class QuestionLog:
    """Writes questions: their text, or with `hashed` only digests. `secrets` are the words for a password."""

    hashed: bool = False
    secrets: AbstractSet[str] = frozenset()

    def add(self, connection: Connection, kept: Sequence[KeptAnswer]) -> None:
        """Write the questions of these answers, in the transaction that writes the answers."""
        if not (logged := [one for one in kept if one.found and one.outcome not in UNLOGGED]):
            return
        key = connection.scalar(select(question_key.c.key)) or b""
        connection.execute(insert_new(connection.dialect.name, questions), [self._row(one, key) for one in logged])

    def _row(self, one: KeptAnswer, key: bytes) -> dict[str, Any]:
        found = one.found or Found()
        return {
            "id": one.id,
            "created": one.created,
            "assistant": one.assistant,
            "language": one.language,
            "text": "" if self.hashed else redacted(one.question, self.secrets),
            "digest": digest(one.question, key),
            "outcome": one.outcome,
            "evidence": found.evidence,
            "needed": found.needed,
            "nearest": dict(found.nearest),
            "used": list(dict.fromkeys(source.url for source in one.sources)),
            "vector": b"" if self.hashed else found.vector,
            "embedder": found.embedder,
            "rating": "",
        }


def digest(question: str, key: bytes) -> str:
    """The same for the same words, whatever their case and diacritics; without the key, nobody can try questions out."""
    words = " ".join(fold(question).split()).strip(" .?!")
    return blake2b(words.encode("utf-8", "replace"), key=key[:64], digest_size=16).hexdigest()


def questions_between(connection: Connection, since: float, until: float, after: int = 0) -> Sequence[LoggedQuestion]:
    """Up to `AT_ONCE` questions of this time (seconds since 1970) with a number greater than `after`, by number."""
    query = select(questions).where(
        questions.c.created >= since, questions.c.created < until, questions.c.number > after
    )
    rows = connection.execute(query.order_by(questions.c.number).limit(AT_ONCE))
    return [LoggedQuestion(**{name: value for name, value in row._mapping.items() if name in FIELDS}) for row in rows]  # noqa: SLF001  # its public name
