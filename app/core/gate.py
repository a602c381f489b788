"""Limits the number of requests that are processed at the same time, and shares a computation among them. More would only slow each
other down.

A request that waits for a language model doesn't count, so hundreds of answers can be in progress while few are processed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from app.core.errors import Overloaded

CONCURRENT = 8
"""Requests processed at the same time: with 4 or 24, the rate of answers is the same, but times grow with the number."""

QUEUE = 16
"""Length of the queue under lasting overload: enough to keep every slot in use."""

BURST = 320
"""Length of the queue for requests that came all at once: most of them are answered before `LONGEST_WAIT`."""

LONGEST_WAIT = 4.0
"""Seconds that a request may wait in the queue. If the oldest waits longer, that is an overload, not a burst."""

LOG_INTERVAL = 10.0  # seconds

log = logging.getLogger("app.gate")
_place: ContextVar[Place | None] = ContextVar("place", default=None)


class Gate:
    """Admits a limited number of requests; the others wait in the order of their arrival.

    Up to `BURST` requests may wait. If the queue is longer, or the oldest request waits for `LONGEST_WAIT`, it is cut to `QUEUE`
    and stays so short until it is empty: in a long queue, every answer would be late.
    """

    def __init__(
        self,
        most_open: int,
        *,
        at_once: int = CONCURRENT,
        longest_wait: float = LONGEST_WAIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_open = most_open
        self._at_once = at_once
        self._longest_wait = longest_wait
        self._clock = clock
        self._overloaded = False  # since a request was refused, until the queue is empty
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._refused = 0
        self._log_at = -LOG_INTERVAL
        self.open = 0  # answers that are worked on or wait
        self.opened = 0  # answers since the start
        self.working = 0

    @property
    def waiting(self) -> int:
        """The number of requests in the queue."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """True if a new request is refused."""
        waiting = len(self._waiting)
        return self.open >= self._most_open or waiting >= (QUEUE if self._overloaded else BURST)

    def refusal(self) -> Overloaded:
        """The error to raise. Logs refusals at intervals and cuts the queue: the newest requests stay."""
        self._refused += 1
        message = f"{self.open} answers are in progress, {self.working} are processed, {len(self._waiting)} wait"
        if (now := self._clock()) >= self._log_at:
            self._log_at = now + LOG_INTERVAL
            log.warning("overloaded, requests are refused: %s; refused so far: %d", message, self._refused)
        self._overloaded = True
        while len(self._waiting) > QUEUE:
            if not (turn := self._waiting.popleft()).done():
                turn.set_result(False)
        return Overloaded(message)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Place]:
        """Context in which the request has a place; it may wait first. Raises `Overloaded`."""
        if self.full:
            raise self.refusal()
        if self._waiting or self.working >= self._at_once:
            await self._turn()
        else:
            self.working += 1
        place = Place(self)
        _place.set(place)
        self.open += 1
        self.opened += 1
        try:
            yield place
        finally:
            self.open -= 1
            place.leave()
            _place.set(None)

    def count(self, change: int) -> None:
        """Change the number of processed requests by one and admit waiting ones. A request that returns never waits."""
        self.working += change
        while self._waiting and self.working < self._at_once:
            turn = self._waiting.popleft()
            if not turn.done():  # else it was cancelled but has not run since
                turn.set_result(True)
                self.working += 1

    async def _turn(self) -> None:
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._overloaded = False
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._longest_wait):
                admitted = await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # admitted and cancelled at the same moment
                self.count(-1 if turn.result() else 0)
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise self.refusal() from error
            raise
        if not admitted:
            raise self.refusal()


class Place:
    """The place of one request.

    It doesn't count as processed while a part of it waits for a server (`away`), unless another part is `busy`.
    """

    __slots__ = ("_away", "_busy", "_counted", "_gate", "_left")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._away = self._busy = 0
        self._counted, self._left = True, False

    def leave(self) -> None:
        """Give the place back; may be called twice."""
        self._left = True
        self._update()

    def step(self, away: int = 0, busy: int = 0) -> None:
        """Change the number of parts that wait for a server, or that are busy."""
        self._away += away
        self._busy += busy
        self._update()

    def _update(self) -> None:
        works = not self._left and (self._busy > 0 or self._away == 0)
        if works is not self._counted:
            self._counted = works
            self._gate.count(1 if works else -1)


@contextmanager
def away() -> Iterator[None]:
    """Context in which this task's request waits for a server. Without a request, it has no effect."""
    if (place := _place.get()) is None:
        yield
        return
    place.step(away=1)
    try:
        yield
    finally:
        place.step(away=-1)


@contextmanager
def busy() -> Iterator[None]:
    """Context in which a part of the request searches or computes, so that the request counts as processed."""
    if (place := _place.get()) is None:
        yield
        return
    place.step(busy=1)
    try:
        yield
    finally:
        place.step(busy=-1)


def leave() -> None:
    """Give back the place of this task's request: from now on, it only waits."""
    if place := _place.get():
        place.leave()


T = TypeVar("T")


class StillRunning(TimeoutError):
    """A computation goes on after the patience of the caller."""


class Joined(Generic[T]):
    """Computes a value for all who ask while it is computed, and keeps none.

    Each caller waits for the computation that ran when the caller asked, whatever others start meanwhile. Cancelling one
    caller, or the end of its patience, doesn't affect the others.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[T] | None = None

    @property
    def running(self) -> bool:
        """True while a value is computed."""
        return self._task is not None and not self._task.done()

    async def get(self, compute: Callable[[], Coroutine[Any, Any, T]], patience: float | None = None) -> T:
        """The result. The first caller starts the computation. Raises `StillRunning` after `patience` seconds, None for no limit."""
        task = self._task
        if task is None or self._is_over(task) or _foreign(task):
            task = self._task = asyncio.create_task(compute())
            task.add_done_callback(self._ended)
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            raise StillRunning
        return task.result()

    def _is_over(self, task: asyncio.Task[T]) -> bool:
        """True if the next caller starts another computation."""
        return task.done()

    def _ended(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # callers receive the error; without callers, this marks it as retrieved
        if self._task is task and self._is_over(task):
            self._task = None  # and with it the value


class Shared(Joined[T]):
    """Computes a value once and keeps it; a failure isn't kept."""

    def _is_over(self, task: asyncio.Task[T]) -> bool:
        return task.done() and (task.cancelled() or task.exception() is not None)


def _foreign(task: asyncio.Task[Any]) -> bool:
    return not task.done() and task.get_loop() is not asyncio.get_running_loop()
