"""The conversations as the API uses them: reads in threads, writes in the background, retention every hour."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from app.conversations import queries
from app.conversations.database import Database
from app.conversations.question_log import QuestionLog, questions_between
from app.conversations.records import (
    Conversation,
    Feedback,
    KeptAnswer,
    LoggedQuestion,
    Paging,
    Part,
    Rating,
    new_conversation_id,
)
from app.conversations.writer import Writer
from app.core.breaker import Breaker
from app.core.errors import AssistantError, DatabaseError, DatabaseUnavailable
from app.core.log_message import LogMessage
from app.core.probe import Probe

log = logging.getLogger("app.conversations")
P = ParamSpec("P")
T = TypeVar("T")

DAY = 86_400
HOUR = 3_600
FORGOTTEN_AT_ONCE = 1_000
"""Rows that one transaction deletes, so that answers aren't kept waiting."""


class ConversationStore:
    """What is kept of conversations, for so many `days`. `clock` is the time in seconds since 1970.

    `question_log` writes what was asked; None logs nothing. Methods raise `DatabaseError`, except `add` and `keep`. What another owner has doesn't exist: it is None or False.
    """

    def __init__(
        self,
        database: Database,
        days: int,
        *,
        question_log: QuestionLog | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.days = days
        self.question_log = question_log
        self.name = database.name
        self.clock = clock
        self._database = database
        self._prepared = False
        probe = Probe(self._ask)
        self.breaker = Breaker("database", database.name, (DatabaseError,), DatabaseUnavailable, probe=probe)
        self.writer = Writer(self._write_batch, self.breaker)
        self._tending: asyncio.Task[None] | None = None

    # ---- life ----

    def prepare(self) -> None:
        """Bring the tables to the newest revision; blocks."""
        if not self._prepared:
            self._database.migrate()
            self._prepared = True

    def begin(self) -> None:
        """Begin to delete what is too old, now and every hour."""
        self._tending = asyncio.create_task(self._tend())

    async def close(self) -> None:
        """Write what waits, and close the database."""
        if self._tending:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        await self.writer.close()
        self._database.close()

    async def forget(self) -> int:
        """Delete what is older than the retention; returns the number of rows."""
        before, gone = self.clock() - self.days * DAY, 0
        while count := await self._write(queries.forget, before, FORGOTTEN_AT_ONCE):
            gone += count
        await self._run("clean", self._database.clean)
        return gone

    async def _tend(self) -> None:
        while True:
            try:
                await self.forget()
            except AssistantError as error:
                log.warning(LogMessage("what is too old is deleted in an hour", error=error))
            await asyncio.sleep(HOUR)

    # ---- answers ----

    async def keep(self, answer: KeptAnswer) -> None:
        """Write an answer and wait for it, but only a moment; see `Writer.add`."""
        await self.writer.written(self.writer.add(answer))

    async def answer(self, owner: str, id_: str) -> KeptAnswer | None:
        """The answer of this id."""
        return await self._read(queries.answer, owner, id_)

    async def delete_answer(self, owner: str, id_: str) -> bool:
        """Delete an answer and its feedback."""
        return await self._write(queries.delete_answer, owner, id_)

    async def turns_of(self, owner: str, conversation: str) -> Sequence[KeptAnswer] | None:
        """The last answers of a conversation, the oldest first."""
        return await self._read(queries.turns_of, owner, conversation)

    async def turns_until(self, owner: str, answer: str) -> Sequence[KeptAnswer] | None:
        """An answer and those that it followed, the oldest first."""
        return await self._read(queries.turns_until, owner, answer)

    # ---- conversations ----

    async def create(self, owner: str, title: str, metadata: Mapping[str, str]) -> Conversation:
        """A new conversation."""
        made = Conversation(new_conversation_id(), owner, self.clock(), title, metadata)
        await self._write(queries.add_conversation, made)
        return made

    async def conversation(self, owner: str, id_: str) -> Conversation | None:
        """The conversation of this id."""
        return await self._read(queries.conversation, owner, id_)

    async def conversations(self, owner: str, paging: Paging) -> Part[Conversation] | None:
        """A part of the list of conversations."""
        return await self._read(queries.list_conversations, owner, paging)

    async def change(
        self, owner: str, id_: str, *, title: str | None, metadata: Mapping[str, str] | None
    ) -> Conversation | None:
        """The conversation with this title and metadata, if they are given."""
        return await self._write(queries.change_conversation, owner, id_, title=title, metadata=metadata)

    async def delete(self, owner: str, id_: str) -> bool:
        """Delete a conversation with its answers and their feedback."""
        return await self._write(queries.delete_conversation, owner, id_)

    async def reset(self, owner: str, id_: str) -> Conversation | None:
        """The conversation, whose answers and feedback are deleted."""
        return await self._write(queries.reset_conversation, owner, id_)

    async def answers_of(self, conversation: str, paging: Paging, *, number: int | None = None) -> Part[KeptAnswer]:
        """A part of the answers of a conversation, which begins with that of this number."""
        return await self._read(queries.answers_of, conversation, paging, number=number)

    # ---- feedback ----

    async def rate(self, owner: str, answer: str, rating: Rating, comment: str | None) -> Feedback | None:
        """The feedback that the answer has now. A `comment` of None leaves an earlier one as it is."""
        given = {"rating": rating, "created": self.clock()} | ({} if comment is None else {"comment": comment})
        return await self._write(queries.add_feedback, owner, answer, given)

    async def unrate(self, owner: str, answer: str) -> bool:
        """Delete the feedback on an answer."""
        return await self._write(queries.delete_feedback, owner, answer)

    async def feedback(self, paging: Paging, *, since: float = 0.0, rating: str = "") -> Part[Feedback] | None:
        """A part of the feedback of all owners."""
        return await self._read(queries.list_feedback, paging, since=since, rating=rating)

    # ---- the question log ----

    async def questions(self, since: float, until: float) -> AsyncIterator[Sequence[LoggedQuestion]]:
        """The logged questions of this time (seconds since 1970) in parts, by number."""
        after = 0
        while part := await self._read(questions_between, since, until, after):
            yield part
            after = part[-1].number

    # ---- threads ----

    async def _read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run("read", self._database.read, query, *args, **kwargs)

    async def _write(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        await self.writer.settle()
        return await self._run("write", self._database.write, query, *args, **kwargs)

    async def _run(self, operation: str, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        def prepared() -> T:
            self.prepare()
            return work(*args, **kwargs)

        with self.breaker.call(operation):
            return await asyncio.to_thread(prepared)

    def _write_batch(self, batch: Sequence[KeptAnswer]) -> None:
        self.prepare()
        self._database.write(self._add, batch)

    def _add(self, connection: Connection, batch: Sequence[KeptAnswer]) -> None:
        added = queries.add_answers(connection, batch)
        if self.question_log:
            self.question_log.add(connection, added)

    async def _ask(self) -> None:
        await asyncio.to_thread(self._database.count)
