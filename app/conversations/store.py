"""The conversations as the API uses them: reads in threads, writes in batches in the background, retention every hour."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from app.conversations import queries
from app.conversations.database import Database
from app.conversations.queries import QuestionLog, questions_between
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
from app.core.breaker import Breaker, Probe
from app.core.errors import AssistantError, DatabaseError, DatabaseUnavailable
from app.core.log_message import LogMessage

log = logging.getLogger("app.conversations")

MOST_WAITING = 1_000
"""Answers that may wait to be written; further ones aren't kept."""
MOST_AT_ONCE = 100
GATHER = 0.01
"""Seconds between two batches: a transaction for each answer took a twentieth of the service's CPU under load."""
WAIT = 0.5
"""Longest time that the end of an answer waits for the database; while the database is slower, it doesn't wait at all."""
PAUSE = 0.5
"""Seconds between two tries to write the same answers."""
FLUSH = 5.0
"""Seconds to write what waits when the service stops, or before it is changed."""
STOPPED = "the service has stopped"

Waiting = list[tuple[KeptAnswer, asyncio.Future[None]]]


class Writer:
    """Writes answers with `write`, which blocks and raises a `DatabaseError`. Used in one event loop.

    `on_lost` is called with the number of answers that could not be kept.
    """

    def __init__(self, write: Callable[[Sequence[KeptAnswer]], None], breaker: Breaker) -> None:
        self.on_lost: Callable[[int], None] = lambda _: None
        self._write = write
        self._breaker = breaker
        self._waiting: Waiting = []
        self._last: asyncio.Future[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._batch_began: float | None = None
        self._next_batch = 0.0  # earliest, by the monotonic clock
        self._lost = 0  # since an answer was kept
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="conversations")

    def add(self, answer: KeptAnswer) -> asyncio.Future[None] | None:
        """Add an answer to those that are written next; the result is there when it is committed or lost. Never fails.

        None if it is lost at once, because too many are waiting or the service has stopped.
        """
        if self._closed or len(self._waiting) >= MOST_WAITING:
            self._lose(1, "too many answers wait to be written")
            return None
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((answer, written))
        self._last = written
        if self._writing is None or self._writing.done():
            # not in the context of this request: its id and its span are not those of the batch
            self._writing = asyncio.create_task(self._write_all(), context=Context())
        return written

    async def written(self, future: asyncio.Future[None] | None) -> None:
        """Wait until an answer is written, unless the database takes too long."""
        if future and not self._is_slow():
            await asyncio.wait((future,), timeout=WAIT)

    async def settle(self) -> None:
        """Wait until all that was added is written or lost, some seconds at most: what is to be changed may be among it."""
        if self._last and not self._last.done():
            await asyncio.wait((self._last,), timeout=FLUSH)

    async def close(self) -> None:
        """Write what waits, for some seconds, and end the thread."""
        self._closed = True
        if self._writing:
            await asyncio.wait((self._writing,), timeout=FLUSH)
            self._writing.cancel()
        if self._waiting:
            self._lose(len(self._waiting), STOPPED)
        self._thread.shutdown(wait=False)

    def _is_slow(self) -> bool:
        return self._batch_began is not None and time.monotonic() - self._batch_began > WAIT

    async def _write_all(self) -> None:
        while self._waiting:
            if (early := self._next_batch - time.monotonic()) > 0:
                await asyncio.sleep(early)
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            self._batch_began = time.monotonic()
            try:
                await self._write_batch([answer for answer, _ in batch])
            finally:
                self._batch_began, self._next_batch = None, time.monotonic() + GATHER
                for _, written in batch:
                    if not written.done():
                        written.set_result(None)

    async def _write_batch(self, batch: Sequence[KeptAnswer]) -> None:
        try:
            await self._until_written(batch)
        except DatabaseUnavailable as error:
            self._lose(len(batch), error)
        except DatabaseError as error:
            if len(batch) == 1:
                self._lose(1, error)
                return
            for answer in batch:  # one that the database refuses doesn't take the others with it
                await self._write_batch([answer])
        except asyncio.CancelledError:
            self._lose(len(batch), STOPPED)
            raise
        except Exception:
            log.exception("writing answers failed")
            self._lose(len(batch), "see the traceback above")
        else:
            self._found()

    async def _until_written(self, batch: Sequence[KeptAnswer]) -> None:
        """Write the batch; a database that is away for a moment, such as for its restart, is tried until the breaker opens."""
        while True:
            try:
                with self._breaker.call("write"):
                    await asyncio.get_running_loop().run_in_executor(self._thread, self._write, batch)
            except DatabaseUnavailable:
                if self._breaker.state:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                return

    def _lose(self, count: int, error: AssistantError | str) -> None:
        """Count answers that aren't kept; the first is logged, so that an outage doesn't fill the log."""
        if not self._lost:
            log.warning(LogMessage("answers are not kept", error=str(error)))
        self._lost += count
        self.on_lost(count)

    def _found(self) -> None:
        if self._lost:
            log.warning(LogMessage("answers are kept again", lost=self._lost))
            self._lost = 0


P = ParamSpec("P")
T = TypeVar("T")

DAY = 86_400
HOUR = 3_600
FORGOTTEN_AT_ONCE = 1_000
"""Rows that one transaction deletes, so that answers aren't kept waiting."""


class ConversationStore:
    """Store of conversations, kept for so many `days`. `clock` is the time in seconds since 1970.

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
        """Bring the tables to the newest revision; blocks. Raises `DatabaseUnavailable` once if the file was lost since."""
        self._check_file()
        if not self._prepared:
            self._database.migrate()
            self._prepared = True

    def _check_file(self) -> None:
        if self._prepared and (loss := self._database.loss()):
            self._prepared = False
            log.error(LogMessage("the database of conversations was lost", error=loss))
            raise DatabaseUnavailable(loss)

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
        conversation = Conversation(new_conversation_id(), owner, self.clock(), title, metadata)
        await self._write(queries.add_conversation, conversation)
        return conversation

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
        feedback = {"rating": rating, "created": self.clock()} | ({} if comment is None else {"comment": comment})
        return await self._write(queries.add_feedback, owner, answer, feedback)

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
        def look() -> None:
            self._check_file()
            self._database.count()

        await asyncio.to_thread(look)
