"""Writes answers in batches, in one thread: those that end within `GATHER` seconds of the last batch are the next one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context

from app.conversations.records import KeptAnswer
from app.core.breaker import Breaker
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
