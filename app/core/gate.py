"""How many requests are worked on at once. More than a few only slow each other down, until none is answered in time.

A request that waits for a language model takes no place, so that hundreds of answers can be written while few are worked on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from app.core.errors import Overloaded

AT_ONCE = 8
"""Requests that are worked on: as many answers a second as with 4 or 24, at times that grow with the number."""

QUEUE = 16
"""Requests that wait while more come than can be answered: enough that no place stays empty."""

BURST = 320
"""Requests that wait when they came all at once: most of them are answered before `LONGEST_WAIT`."""

STANDING = 0.5
"""Seconds after which a queue that was never empty is no burst."""

LONGEST_WAIT = 4.0
"""Seconds in the queue."""

TELL_EACH = 10.0  # seconds

log = logging.getLogger("app.gate")
_place: ContextVar[Place | None] = ContextVar("place", default=None)


class Gate:
    """Lets in so many at once; the others wait, in the order in which they came.

    A burst may wait whole. Once the queue is too long, or stands for too long while more come, it is cut to `QUEUE` and
    kept so until it is empty: a long queue would only make every answer late.
    """

    def __init__(
        self,
        most_open: int,
        *,
        at_once: int = AT_ONCE,
        longest_wait: float = LONGEST_WAIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_open = most_open
        self._at_once = at_once
        self._longest_wait = longest_wait
        self._clock = clock
        self._standing_at = 0.0
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._refused = 0
        self._tell_at = -TELL_EACH
        self.open = 0
        self.working = 0

    @property
    def full(self) -> bool:
        """Whether a newcomer is refused."""
        waiting = len(self._waiting)
        return self.open >= self._most_open or (
            waiting >= QUEUE and (waiting >= BURST or self._clock() >= self._standing_at)
        )

    def refusal(self) -> Overloaded:
        """What to raise; the log has it once for many. The queue is cut: who came last is answered soonest."""
        self._refused += 1
        message = f"{self.open} answers are under way, {self.working} are worked on, {len(self._waiting)} wait"
        if (now := self._clock()) >= self._tell_at:
            self._tell_at = now + TELL_EACH
            log.warning("overloaded, requests are refused: %s; refused so far: %d", message, self._refused)
        self._standing_at = now
        while len(self._waiting) > QUEUE:
            if not (turn := self._waiting.popleft()).done():
                turn.set_result(False)
        return Overloaded(message)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Place]:
        """A place, maybe after some waiting; given back at the end. Raises `Overloaded`."""
        if self.full:
            raise self.refusal()
        if self._waiting or self.working >= self._at_once:
            await self._turn()
        else:
            self.working += 1
        place = Place(self)
        _place.set(place)
        self.open += 1
        try:
            yield place
        finally:
            self.open -= 1
            place.leave()
            _place.set(None)

    def count(self, change: int) -> None:
        """One more or one less is worked on: what returns isn't kept waiting, what is new waits until there is room."""
        self.working += change
        while self._waiting and self.working < self._at_once:
            turn = self._waiting.popleft()
            if not turn.done():  # else it gave up and hasn't run since
                turn.set_result(True)
                self.working += 1

    async def _turn(self) -> None:
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._standing_at = self._clock() + STANDING
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._longest_wait):
                let_in = await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # its turn came, and it gave up in the same moment
                self.count(-1 if turn.result() else 0)
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise self.refusal() from error
            raise
        if not let_in:
            raise self.refusal()


class Place:
    """What one request holds while it is worked on.

    It isn't worked on while a part of it waits for a server (`away`), unless another part searches or computes (`busy`).
    """

    __slots__ = ("_away", "_busy", "_counted", "_gate", "_left")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._away = self._busy = 0
        self._counted, self._left = True, False

    def leave(self) -> None:
        """Give the place back for good; may be called twice."""
        self._left = True
        self._update()

    def step(self, away: int = 0, busy: int = 0) -> None:
        """More or fewer parts that wait, or that work."""
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
    """While the request that this task belongs to waits for a server; nothing where it belongs to none."""
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
    """While a part of the request searches or computes, whatever its other parts wait for."""
    if (place := _place.get()) is None:
        yield
        return
    place.step(busy=1)
    try:
        yield
    finally:
        place.step(busy=-1)


def leave() -> None:
    """What is left of this request is waiting: another may be worked on."""
    if place := _place.get():
        place.leave()
