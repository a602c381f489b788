"""The events of one answer as they come, and the client hanging up, in one place to wait at."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from app.api.middleware.admission import AnswerLimits
from app.core.errors import ModelError
from app.core.turn import Done, Event, Failure, Reasoning, Status, Text

log = logging.getLogger("app.api")
CLEANUP_SECONDS = 5.0  # seconds that a pipeline may take to tidy up after its last event


class EventQueue:
    """Reads an answer in a task of its own, so that pieces that are there already are taken together.

    Status lines are among the events only with `status`. It waits for its turn and ends in time by `limits`. Leaving the context closes the answer, which cancels its work upstream. The answer is read as fast
    as it comes: a client that reads slowly holds a few kilobytes here, and no connection to a model.
    """

    def __init__(
        self,
        events: AsyncIterator[Event],
        receive: Receive,
        *,
        status: bool = False,
        limits: AnswerLimits | None = None,
    ) -> None:
        self._events = events
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
        for result in await asyncio.gather(self._reader, self._watcher, return_exceptions=True):
            if isinstance(result, Exception):
                log.warning("closing an answer failed error=%r", result)

    async def take(self) -> list[Event]:
        """All events that have come, at least one, or none when `wake_after` woke the caller.

        The answer ends with `Done` or `Failure`, whatever else happens. Raises `ClientDisconnect` once the client hung up.
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
        """From now on `take` returns after a silence of this length (at most half as much again)."""
        if not self._timer:
            self._taken_at = time.monotonic()
            self._tick(seconds)

    def _tick(self, seconds: float) -> None:
        # one timer looks in now and then: a timeout of its own for each piece would cost more than the piece
        if time.monotonic() - self._taken_at >= seconds:
            self._notify()
        self._timer = asyncio.get_running_loop().call_later(seconds / 2, self._tick, seconds)

    async def _read(self) -> None:
        has_text = False
        try:
            async with self._limits.answer() as deadline:
                async for event in self._events:
                    if isinstance(event, Text) and not has_text:
                        has_text = True
                        deadline.began()
                    if isinstance(event, Done) and not has_text:
                        break
                    if not self._finished:  # read on, so that the pipeline comes to its own end
                        self._put(event)
            if self._finished:
                return
            self._put(Failure(ModelError("The answer broke off." if has_text else "The answer was empty.")))
        except Exception as error:  # noqa: BLE001  # every error becomes an answer to the client
            self._put(Failure(error))
        finally:
            if close := getattr(self._events, "aclose", None):
                await close()

    def _put(self, event: Event) -> None:
        if isinstance(event, Reasoning) or (isinstance(event, Status) and not self._status):
            return  # clients aren't sent these; they must not pass for a sign of life either
        self._finished = isinstance(event, Done | Failure)
        self._waiting.append(event)
        self._notify()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._disconnected = True
        self._notify()

    def _notify(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)
