"""Queries of the database. Each function gets a connection in a transaction; others' rows don't exist for an owner."""

import dataclasses
import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    delete,
    func,
    insert,
    literal,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from app.conversations.database import lock
from app.conversations.records import Conversation, Feedback, Found, KeptAnswer, Paging, Part
from app.conversations.tables import answers, conversations, feedback, question_key, questions, verdicts
from app.core.language import Vocabulary
from app.core.turn import Source, Unsupported, Verbatim
from app.text.analysis import fold
from app.text.redaction import redacted

T = TypeVar("T")

LONGEST_CHAIN = 25
"""Answers that a conversation is read back to: the API sends the model no more than 50 messages."""
TITLE = 80
KEPT = {field.name for field in dataclasses.fields(KeptAnswer)}
FOUND = tuple(field.name for field in dataclasses.fields(Found))
NOTHING = Found()


# ---- writing answers -------------------------------------------------------------------------


def add_answers(connection: Connection, kept: Sequence[KeptAnswer]) -> Sequence[KeptAnswer]:
    """Add these answers, and the conversations that they make, except those whose conversation was deleted; those added."""
    makers = {answer.conversation: answer for answer in kept if answer.makes}
    if makers:
        rows = [
            {"id": id_, "owner": answer.owner, "created": answer.created}
            for id_, answer in sorted(makers.items())  # in one order, so that two replicas don't wait for each other
        ]
        connection.execute(insert_new(connection.dialect.name, conversations), rows)
    known = {"", *makers}
    if others := {answer.conversation for answer in kept} - known:
        query = select(conversations.c.id).where(conversations.c.id.in_(sorted(others)))
        known.update(connection.scalars(query.with_for_update(read=True, key_share=True)))
    if added := [answer for answer in kept if answer.conversation in known]:
        connection.execute(insert_new(connection.dialect.name, answers), [_answer_row(answer) for answer in added])
    return added


@cache  # to build a statement takes as long as to run it
def insert_new(dialect: str, table: Table) -> Any:
    """An insert that leaves out rows whose id is there already."""
    kind = postgresql if dialect == "postgresql" else sqlite
    return kind.insert(table).on_conflict_do_nothing(index_elements=[table.c.id])


def _answer_row(one: KeptAnswer) -> dict[str, Any]:
    values = {column.name: getattr(one, column.name) for column in answers.c if column.name != "number"}
    links = {"conversation": one.conversation or None, "previous": one.previous or None}
    return {**values, **links, "sources": list(one.sources), "unsupported": list(one.unsupported)}


# ---- conversations ---------------------------------------------------------------------------


def add_conversation(connection: Connection, one: Conversation) -> None:
    """Add a conversation."""
    row = {"id": one.id, "owner": one.owner, "created": one.created}
    connection.execute(insert(conversations), row)


def conversation(connection: Connection, owner: str, id_: str) -> Conversation | None:
    """The conversation; None if this owner has none of this id."""
    row = connection.execute(_conversations(owner).where(conversations.c.id == id_)).first()
    return _conversation(row) if row else None


def list_conversations(connection: Connection, owner: str, paging: Paging) -> Part[Conversation] | None:
    """A part of the owner's conversations, by the time they were made; None if there is none with the id `after`."""
    place, mine = (conversations.c.created, conversations.c.id), conversations.c.owner == owner
    return _part(connection, _conversations(owner), paging, place, _conversation, mine)


def delete_conversation(connection: Connection, owner: str, id_: str) -> bool:
    """Delete a conversation with its answers and their feedback. False if this owner has none of this id."""
    if connection.scalar(select(conversations.c.id).where(*_owned(owner, id_))):
        _unlog(connection, answers.c.conversation == id_)
    return connection.execute(delete(conversations).where(*_owned(owner, id_))).rowcount > 0


def reset_conversation(connection: Connection, owner: str, id_: str) -> Conversation | None:
    """The conversation, without its answers and their feedback; None if the owner has none of this id."""
    if (kept_conversation := conversation(connection, owner, id_)) is None:
        return None
    _unlog(connection, answers.c.conversation == id_)
    connection.execute(delete(answers).where(answers.c.conversation == id_))
    return conversation(connection, owner, kept_conversation.id)


def _unlog(connection: Connection, *which: ColumnElement[bool]) -> None:
    """Delete the questions of these answers, which are deleted next, from the question log, and the verdicts on them."""
    for table in (questions, verdicts):
        connection.execute(delete(table).where(table.c.id.in_(select(answers.c.id).where(*which))))


def _part(
    connection: Connection,
    query: Select[Any],
    paging: Paging,
    place: Sequence[Column[Any]],
    read: Callable[[Row[Any]], T],
    *which: ColumnElement[bool],
) -> Part[T] | None:
    """A part of what the query selects, in the order of the columns `place`, the last of which is the id.

    None if there is no row with the id `after` among those of the condition `which`.
    """
    if paging.after:
        last = connection.execute(select(*place).where(place[-1] == paging.after, *which)).first()
        if last is None:
            return None
        here, there = tuple_(*place), tuple_(*(literal(value) for value in last))
        query = query.where(here > there if paging.order == "asc" else here < there)
    order = [column.asc() if paging.order == "asc" else column.desc() for column in place]
    rows = connection.execute(query.order_by(*order).limit(paging.limit + 1)).all()
    return Part([read(row) for row in rows[: paging.limit]], len(rows) > paging.limit)


def _owned(owner: str, id_: str) -> tuple[ColumnElement[bool], ...]:
    return conversations.c.id == id_, conversations.c.owner == owner


def _conversations(owner: str) -> Select[Any]:
    first = (
        select(func.substr(answers.c.question, 1, TITLE))
        .where(answers.c.conversation == conversations.c.id)
        .order_by(answers.c.number)
        .limit(1)
        .scalar_subquery()
    )
    return select(conversations, first.label("first")).where(conversations.c.owner == owner)


def _conversation(row: Row[Any]) -> Conversation:
    return Conversation(row.id, row.owner, row.created, row.first or "")


# ---- answers ---------------------------------------------------------------------------------


def answer(connection: Connection, owner: str, id_: str) -> KeptAnswer | None:
    """The answer; None if this owner has none of this id."""
    row = connection.execute(_answers().where(answers.c.id == id_, answers.c.owner == owner)).first()
    return _answer(row) if row else None


def delete_answer(connection: Connection, owner: str, id_: str) -> bool:
    """Delete an answer and its feedback. False if this owner has none of this id."""
    which = answers.c.id == id_, answers.c.owner == owner
    _unlog(connection, *which)
    return connection.execute(delete(answers).where(*which)).rowcount > 0


def answers_of(connection: Connection, conversation_id: str, paging: Paging) -> Part[KeptAnswer] | None:
    """A part of the answers of a conversation, by number; None if there is none with the id `after`."""
    place, which = (answers.c.number, answers.c.id), answers.c.conversation == conversation_id
    return _part(connection, _answers().where(which), paging, place, _answer, which)


def turns_of(connection: Connection, owner: str, conversation_id: str) -> Sequence[KeptAnswer] | None:
    """The last answers of a conversation, the oldest first; None if this owner has none of this id."""
    known = connection.scalar(select(conversations.c.id).where(*_owned(owner, conversation_id)))
    return _before(connection, conversation_id, None) if known else None


def turns_until(connection: Connection, owner: str, id_: str) -> Sequence[KeptAnswer] | None:
    """The answer of this id and those that it followed, the oldest first; None if this owner has none of this id."""
    mine = answers.c.owner == owner
    begin = select(answers.c.id, answers.c.previous, literal(1).label("depth")).where(answers.c.id == id_, mine)
    chain = begin.cte("chain", recursive=True)
    chain = chain.union_all(
        select(answers.c.id, answers.c.previous, chain.c.depth + 1)
        .join(chain, answers.c.id == chain.c.previous)
        .where(mine, chain.c.depth < LONGEST_CHAIN)
    )
    rows = connection.execute(_answers().join(chain, answers.c.id == chain.c.id).order_by(chain.c.depth.desc())).all()
    if not rows:
        return None
    chain_answers = [_answer(row) for row in rows]
    if chain_answers[0].conversation:
        chain_answers = [*_before(connection, chain_answers[0].conversation, chain_answers[0].number), *chain_answers]
    return chain_answers[-LONGEST_CHAIN:]


def _before(connection: Connection, conversation_id: str, number: int | None) -> list[KeptAnswer]:
    query = _answers().where(answers.c.conversation == conversation_id)
    if number is not None:
        query = query.where(answers.c.number < number)
    rows = connection.execute(query.order_by(answers.c.number.desc()).limit(LONGEST_CHAIN)).all()
    return [_answer(row) for row in reversed(rows)]


def _answers() -> Select[Any]:
    return select(answers, feedback.c.rating).outerjoin(feedback, feedback.c.answer == answers.c.id)


def _answer(row: Row[Any]) -> KeptAnswer:
    values = {name: value for name, value in row._mapping.items() if value is not None}  # noqa: SLF001  # its public name
    values |= {"sources": _each(Source, row.sources), "unsupported": _each(Unsupported, row.unsupported)}
    values["verbatim"] = next(iter(_each(Verbatim, [row.verbatim] if row.verbatim else [])), None)
    return KeptAnswer(**{name: value for name, value in values.items() if name in KEPT})


def _each(kind: type[Any], stored: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The stored objects as this dataclass, which may have had other fields then."""
    known = {field.name for field in dataclasses.fields(kind)}
    return [kind(**{name: one[name] for name in known & one.keys()}) for one in stored]


# ---- links to answers ------------------------------------------------------------------------

# a token says which answer and until when, signed with the key that the database has, so that nothing is stored; it hides the id of the
# answer, by which readers without a key rate it, and its number, which counts all answers

FORM = struct.Struct(">QI18s")
"""The number of the answer, hidden; the time in seconds since 1970 until which the link works; the signature."""
LENGTH = FORM.size * 4 // 3
NUMBERS = (1 << 63) - 1


def link_to(connection: Connection, owner: str, id_: str, until: float, retention: float) -> tuple[str, int] | None:
    """The token for this answer, and the time until which it works: no longer than the answer is kept. None if this owner has none of this id."""
    if (kept := answer(connection, owner, id_)) is None:
        return None
    end = int(min(until, kept.created + retention))
    token = FORM.pack(kept.number ^ _mask(connection, end), end, _signature(connection, kept, end))
    return urlsafe_b64encode(token).decode(), end


def linked(connection: Connection, token: str) -> tuple[KeptAnswer, int] | None:
    """The answer of the token, and the time until which the link works; None if it was deleted, or the token wasn't made here."""
    try:
        given = urlsafe_b64decode(token) if len(token) == LENGTH else b""
        hidden, end, signature = FORM.unpack(given)
    except (ValueError, struct.error):
        return None
    number = (hidden ^ _mask(connection, end)) & NUMBERS
    row = connection.execute(_answers().where(answers.c.number == number)).first()
    kept = _answer(row) if row else None
    return (kept, end) if kept and hmac.compare_digest(signature, _signature(connection, kept, end)) else None


def _mask(connection: Connection, end: int) -> int:
    return int.from_bytes(_keyed(connection, f"number until {end}")[:8]) & NUMBERS


def _signature(connection: Connection, kept: KeptAnswer, end: int) -> bytes:
    # the id, since SQLite gives the number of a deleted answer to another one
    return _keyed(connection, f"answer {kept.number} until {end}: {kept.id}")[:18]


def _keyed(connection: Connection, said: str) -> bytes:
    key: bytes = connection.execute(select(question_key.c.key)).scalar_one()
    return hmac.digest(key, f"link: {said}".encode(), "sha256")


# ---- feedback --------------------------------------------------------------------------------


def add_feedback(connection: Connection, owner: str, id_: str, given: Mapping[str, Any]) -> Feedback | None:
    """Add the feedback on an answer or replace it; the feedback, or None if this owner has no answer of this id.

    `given` has `rating`, the time `created`, and `comment` if an earlier one is to be replaced.
    """
    if (kept_answer := answer(connection, owner, id_)) is None:
        return None
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(feedback).values(answer=id_, **{"comment": "", **given})
    replacing = statement.on_conflict_do_update(index_elements=[feedback.c.answer], set_=given)
    comment = connection.execute(replacing.returning(feedback.c.comment)).scalar_one()
    connection.execute(update(questions).where(questions.c.id == id_).values(rating=given["rating"]))
    return Feedback(given["rating"], comment, given["created"], kept_answer)


def delete_feedback(connection: Connection, owner: str, id_: str) -> bool:
    """Delete the feedback on an answer. False if there is none on an answer of this owner."""
    if answer(connection, owner, id_) is None:
        return False
    connection.execute(update(questions).where(questions.c.id == id_).values(rating=""))
    return connection.execute(delete(feedback).where(feedback.c.answer == id_)).rowcount > 0


def list_feedback(
    connection: Connection, paging: Paging, *, since: float = 0.0, rating: str = ""
) -> Part[Feedback] | None:
    """A part of all feedback, by time; None if there is none on the answer `after`."""
    query = select(answers, feedback.c.rating, feedback.c.comment, feedback.c.created.label("given"))
    query = query.join(feedback, feedback.c.answer == answers.c.id).where(feedback.c.created >= since)
    if rating:
        query = query.where(feedback.c.rating == rating)
    place = (feedback.c.created, feedback.c.answer)
    return _part(
        connection, query, paging, place, lambda row: Feedback(row.rating, row.comment, row.given, _answer(row))
    )


# ---- retention -------------------------------------------------------------------------------


def forget(connection: Connection, before: float, limit: int) -> int:
    """Delete up to `limit` answers and as many logged questions from before this time, and older conversations without
    answers; how many rows went.
    """
    lock(connection)
    logged = select(questions.c.number).where(questions.c.created < before).order_by(questions.c.created).limit(limit)
    unlogged = connection.execute(delete(questions).where(questions.c.number.in_(logged))).rowcount
    old = select(answers.c.number).where(answers.c.created < before).order_by(answers.c.created).limit(limit)
    gone = connection.execute(delete(answers).where(answers.c.number.in_(old))).rowcount
    used = select(answers.c.number).where(answers.c.conversation == conversations.c.id).exists()
    empty = select(conversations.c.id).where(conversations.c.created < before, ~used).limit(limit)
    emptied = connection.execute(delete(conversations).where(conversations.c.id.in_(empty))).rowcount
    return gone + emptied + unlogged


UNLOGGED = frozenset({"smalltalk", "cancelled"})
"""Outcomes that say nothing of the documentation."""


@dataclass(frozen=True)
class QuestionLog:
    """Writes questions: their text, or with `hashed` only digests. `words` are those for passwords and addresses."""

    hashed: bool = False
    words: Vocabulary | None = None

    def add(self, connection: Connection, kept: Sequence[KeptAnswer]) -> None:
        """Write the questions of these answers, in the transaction that writes the answers."""
        if not (logged := [answer for answer in kept if answer.found and answer.outcome not in UNLOGGED]):
            return
        key = connection.scalar(select(question_key.c.key)) or b""
        connection.execute(
            insert_new(connection.dialect.name, questions), [self._row(answer, key) for answer in logged]
        )

    def _row(self, one: KeptAnswer, key: bytes) -> dict[str, Any]:
        found = one.found or NOTHING
        # not asdict, which copies what is in it, too
        findings = {name: getattr(found, name) for name in FOUND}
        same = {name: getattr(one, name) for name in ("id", "created", "assistant", "language", "outcome")}
        used = list(dict.fromkeys(source.url for source in one.sources))
        hidden = {"text": "", "vector": b""} if self.hashed else {"text": redacted(one.question, self.words)}
        return {**findings, **same, "digest": digest(one.question, key), "used": used, "rating": "", **hidden}


def digest(question: str, key: bytes) -> str:
    """The same for the same words, whatever their case and diacritics; without the key, nobody can try questions out."""
    words = " ".join(fold(question).split()).strip(" .?!")
    return blake2b(words.encode("utf-8", "replace"), key=key[:64], digest_size=16).hexdigest()
