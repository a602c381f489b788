"""Server-sent events: their bytes, and the queue between an answer and its client, which ends the answer when the client disconnects."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from app.core.errors import ModelError
from app.core.log_message import LogMessage
from app.core.turn import AnswerRecord, Done, Event, Failure, Reasoning, Status, Text
from app.http.limits import AnswerLimits, disconnected

log = logging.getLogger("app.http")
KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # otherwise nginx buffers the stream
]
CLEANUP_SECONDS = 5.0  # time for a pipeline to clean up after its last event


class EventQueue:
    """Reads an answer in a background task, so that `take` returns all pieces that have arrived.

    `status` includes status lines; `limits` bounds the wait for a free place and the duration of the answer; `record`
    gets the events, and `ending` is awaited before the last one is given out. Leaving the context closes the answer and cancels its upstream calls. The task never waits for the client: a slow reader
    costs a few kilobytes of memory, but no connection to a model.
    """

    def __init__(
        self,
        events: AsyncIterator[Event],
        receive: Receive,
        *,
        status: bool = False,
        limits: AnswerLimits | None = None,
        record: AnswerRecord | None = None,
        ending: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._events = events
        self._ending = ending
        self._record = record or AnswerRecord()
        self._limits = limits or AnswerLimits()
        self._status = status
        self._receive = receive
        self._waiting: list[Event] = []
        self._disconnected = False
        self._finished = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._taken_at = 0.0

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read())
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer:
            self._timer.cancel()
        self._watcher.cancel()
        if self._finished and not self._reader.done():
            await asyncio.wait([self._reader], timeout=CLEANUP_SECONDS)
        self._reader.cancel()
        await asyncio.gather(self._reader, self._watcher, return_exceptions=True)
        for task in (self._reader, self._watcher):
            # a task keeps its cancellation until it is asked for, and with it the frames: the whole answer with its
            # passages, in a cycle that only the garbage collector finds
            with suppress(asyncio.CancelledError):
                if failed := task.exception():
                    log.warning(LogMessage("closing an answer failed", error=repr(failed)))

    async def take(self) -> list[Event]:
        """Wait for events and return all that have arrived; an empty list after the silence set with `wake_after`.

        The last event is always `Done` or `Failure`. Raises `ClientDisconnect` once the client has disconnected.
        """
        if not self._waiting and not self._disconnected:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None
        if self._disconnected:
            raise ClientDisconnect
        taken, self._waiting = self._waiting, []
        self._taken_at = time.monotonic()
        return taken

    def wake_after(self, seconds: float) -> None:
        """Make `take` return an empty list after this many seconds without an event (at most 1.5 times as many)."""
        if not self._timer:
            self._taken_at = time.monotonic()
            self._tick(seconds)

    def _tick(self, seconds: float) -> None:
        # one recurring timer: a timeout for each piece would cost more than the piece
        if time.monotonic() - self._taken_at >= seconds:
            self._notify()
        self._timer = asyncio.get_running_loop().call_later(seconds / 2, self._tick, seconds)

    async def _read(self) -> None:
        try:
            async with self._limits.answer() as began:
                async for event in self._events:
                    if self._finished:
                        continue  # after the last event, keep reading so that the pipeline can finish
                    if isinstance(event, Done | Failure):
                        await self._end(event)
                    else:
                        self._put(event, began)
            if not self._finished:
                await self._end(Failure(ModelError("The answer broke off.")))
        except Exception as error:  # noqa: BLE001  # every error is reported to the client
            await self._end(Failure(error))
        finally:
            if close := getattr(self._events, "aclose", None):
                await close()

    def _put(self, event: Event, began: Callable[[], None]) -> None:
        if isinstance(event, Text):
            if self._record.first_text is None:
                began()
        elif isinstance(event, Reasoning) or (isinstance(event, Status) and not self._status):
            return  # not sent to the client, so they must not reset the keep-alive timer either
        self._record.add(event)
        self._waiting.append(event)
        self._notify()

    async def _end(self, event: Done | Failure) -> None:
        if isinstance(event, Done) and self._record.first_text is None:
            event = Failure(ModelError("The answer was empty."))
        self._record.add(event)
        if self._ending:
            await self._ending()
        self._finished = True
        self._waiting.append(event)
        self._notify()

    async def _watch(self) -> None:
        await disconnected(self._receive)
        self._disconnected = True
        self._notify()

    def _notify(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


def encoded(data: bytes, name: str = "") -> bytes:
    """One event with this line of data, and with a name if it has one."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + data + b"\n\n"
