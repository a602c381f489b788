"""The conversations as the API uses them: reads in threads, writes in batches in the background, retention every hour."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from sqlalchemy import Connection

from app.conversations import evaluations, log_figures, queries, verdicts
from app.conversations.database import Database
from app.conversations.queries import QuestionLog
from app.conversations.records import (
    Conversation,
    Feedback,
    Given,
    KeptAnswer,
    Rating,
    Verdict,
    new_conversation_id,
)
from app.core.breaker import Breaker, Probe
from app.core.errors import AssistantError, DatabaseError, DatabaseUnavailable
from app.core.log_message import LogMessage

log = logging.getLogger("app.conversations")

MOST_WAITING = 1_000
"""Answers that may wait to be written; further ones aren't kept."""
MOST_AT_ONCE = 100
GATHER = 0.04
"""Seconds between two batches: a transaction, and the way to its thread and back, costs twice as much as an answer in it."""
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
        slow = self._batch_began is not None and time.monotonic() - self._batch_began > WAIT
        if future and not slow:
            await asyncio.wait((future,), timeout=WAIT)

    async def settle(self) -> None:
        """Wait until all that was added is written or lost, some seconds at most: what is to be changed may be among it."""
        if self._last and not self._last.done():
            await asyncio.wait((self._last,), timeout=FLUSH)

    async def close(self) -> None:
        """Write what waits, for some seconds, and end the thread."""
        self._closed = True
        if writing := self._writing:
            await asyncio.wait((writing,), timeout=FLUSH)
            writing.cancel()
        if self._waiting:
            self._lose(len(self._waiting), STOPPED)
        self._thread.shutdown(wait=False)

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
                break
        if self._lost:
            log.warning(LogMessage("answers are kept again", lost=self._lost))
            self._lost = 0

    def _lose(self, count: int, error: AssistantError | str) -> None:
        """Count answers that aren't kept; the first is logged, so that an outage doesn't fill the log."""
        if not self._lost:
            log.warning(LogMessage("answers are not kept", error=str(error)))
        self._lost += count
        self.on_lost(count)


P = ParamSpec("P")
T = TypeVar("T")
Work: TypeAlias = Coroutine[Any, Any, T]

DAY = 86_400
HOUR = 3_600
FORGOTTEN_AT_ONCE = 1_000
"""Rows that one transaction deletes, so that answers aren't kept waiting."""


def _reading(query: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[ConversationStore, P], Work[T]]:
    """A method of the store that runs this query."""

    @wraps(query)
    async def method(store: ConversationStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._run("read", store._database.read, query, *args, **kwargs)  # noqa: SLF001  # its own method

    return method


def _reading_all(
    query: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[ConversationStore, P], Work[T]]:
    """The same after the answers that wait to be written, so that the log has the question that ended just now."""
    read = _reading(query)

    @wraps(query)
    async def method(store: ConversationStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        await store.writer.settle()
        return await read(store, *args, **kwargs)

    return method


def _writing(query: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[ConversationStore, P], Work[T]]:
    """The same for a query that changes something."""

    @wraps(query)
    async def method(store: ConversationStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._write(query, *args, **kwargs)  # noqa: SLF001

    return method


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
        """Bring the tables to the newest version; blocks. Raises `DatabaseUnavailable` once if the file was lost since."""
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

    answer = _reading(queries.answer)
    delete_answer = _writing(queries.delete_answer)
    link_to = _writing(queries.link_to)  # of an answer that may be among those that wait
    linked = _reading(queries.linked)
    turns_of = _reading(queries.turns_of)
    turns_until = _reading(queries.turns_until)

    # ---- conversations ----

    async def create(self, owner: str) -> Conversation:
        """A new conversation."""
        conversation = Conversation(new_conversation_id(), owner, self.clock())
        await self._write(queries.add_conversation, conversation)
        return conversation

    conversation = _reading(queries.conversation)
    conversations = _reading(queries.list_conversations)
    delete = _writing(queries.delete_conversation)
    reset = _writing(queries.reset_conversation)
    answers_of = _reading(queries.answers_of)

    # ---- feedback ----

    async def rate(self, owner: str, answer: str, rating: Rating, comment: str | None) -> Feedback | None:
        """The feedback that the answer has now. A `comment` of None leaves an earlier one as it is."""
        feedback = {"rating": rating, "created": self.clock()} | ({} if comment is None else {"comment": comment})
        return await self._write(queries.add_feedback, owner, answer, feedback)

    unrate = _writing(queries.delete_feedback)
    feedback = _reading(queries.list_feedback)

    # ---- the question log ----

    listed = _reading_all(log_figures.listed)
    by_day = _reading_all(log_figures.by_day)
    of_period = _reading(log_figures.of_period)
    outcomes_by_day = _reading_all(log_figures.outcomes_by_day)
    rated_outcomes = _reading(log_figures.rated_outcomes)
    logged = _reading_all(log_figures.logged)
    cited = _reading(log_figures.cited)

    # ---- verdicts of editors ----

    async def judge(self, answer: str, given: Given) -> Verdict | None:
        """The verdict that the answer has now; None if the log doesn't have its question. Raises `RequestError` as `verdicts.give` does."""
        words = self.question_log.words if self.question_log else None
        return await self._write(verdicts.give, answer, given, self.clock(), words)

    unjudge = _writing(verdicts.take_back)
    verdict_on = _reading(verdicts.verdict_on)
    all_verdicts = _reading(verdicts.all_verdicts)

    evaluations = _reading(evaluations.last_evaluations)

    # ---- threads ----

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
