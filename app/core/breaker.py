"""A circuit breaker: after several failures in a row, calls to a server fail at once instead of waiting for it.

Every call to a model, embedder, reranker or store goes through one, so it also knows how the calls went, and tells observers.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Self

from app.core import spans
from app.core.errors import AssistantError, NoIndex
from app.core.gate import Joined, StillRunning

log = logging.getLogger("app.breaker")

FAILURES = 5
"""Failures in a row that open the breaker: a server that fails now and then is still called."""

PAUSE = 10.0
"""Seconds for which the breaker stays open; after that, one call tries the server."""

PATIENCE = 10.0
"""Seconds after which a call without an answer is a failure, if no other call was answered meanwhile."""

SLOWER = 3
"""A slow server has more patience: this many times the latency of its last success."""

Part = Literal["model", "embedder", "reranker", "store", "database", "limits"]


OnCall = Callable[[Part, str, str, float, Exception | None], None]
"""An observer of calls, in `Breaker.observers`: called with the part, the name of the breaker, the called method, the seconds
and the error at the end of each call, in the event loop. It must neither wait nor raise.

The seconds of a stream are the time to its first text if there was one. The error is None after a success, which may have
come from a cache. Not observed are calls that an open breaker refused, and those that were cancelled before they returned
anything, unless the server seems to hang.
"""


class Record:
    """Record of the calls so far. Times are those of the clock; `latency` of the last success is in seconds.

    `failures` is the number of failures in a row, of which the first was at `failing_since`.
    """

    __slots__ = ("error", "failing_since", "failures", "last_failure", "last_success", "latency")

    def __init__(self) -> None:
        self.last_success: float | None = None
        self.latency = 0.0
        self.last_failure: float | None = None
        self.error = ""
        self.failures = 0
        self.failing_since: float | None = None

    @property
    def last_call(self) -> float:
        """The end of the last call; minus infinity if there was none."""
        return max(self.last_success or -math.inf, self.last_failure or -math.inf)

    def succeeded(self, now: float, seconds: float) -> None:
        """Note a success."""
        self.last_success, self.latency, self.failures = now, seconds, 0
        self.failing_since = None

    def failed(self, now: float, error: Exception) -> None:
        """Note a failure."""
        self.last_failure, self.error = now, str(error) or type(error).__name__
        self.failures += 1
        self.failing_since = self.failing_since or now


class Breaker:
    """Opens after `FAILURES` failures in a row. While it is open, one call every `PAUSE` seconds may try the server, also
    while the one before still waits: it may hang although the server works again.

    `failures` are the errors that count as failures; all other `AssistantError`s, such as for status 429, count as
    successes. While the breaker is open, calls raise a `refusal`. `probe` asks the server when nobody calls it.
    """

    def __init__(
        self,
        part: Part,
        name: str,
        failures: tuple[type[AssistantError], ...],
        refusal: type[AssistantError],
        *,
        probe: Probe | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.part = part
        self.name = name
        self.failures = failures
        self.record = Record()
        self.observers: list[OnCall] = []
        self.facts: spans.Facts = {}  # for the spans of calls
        self.waiting: dict[Call, float] = {}
        self.probe = probe
        self.clock = clock
        self._refusal = refusal
        self._count = 0
        self._since = ""
        self._last = ""
        self._until = 0.0
        self._worked_at = -math.inf
        self._tried_at = -math.inf  # when the call began that tries the server

    @property
    def state(self) -> str:
        """Empty while the breaker is closed; otherwise the time and the error that opened it."""
        return f"failing since {self._since}: {self._last}" if self._count >= FAILURES else ""

    @property
    def stuck_since(self) -> float | None:
        """The start of the oldest call without an answer, if that is too long ago and no call was answered since."""
        began = next(iter(self.waiting.values()), None)
        return None if began is None or not self.is_too_long(began) else began

    def is_too_long(self, began: float) -> bool:
        """True if a call that began then and still has no answer shows that the server hangs."""
        patience = max(PATIENCE, SLOWER * self.record.latency)
        return self.clock() - began > patience and (self.record.last_success or -math.inf) < began

    def call(self, operation: str, *, proves: bool = True) -> Call:
        """A context manager for one call of this method. With `proves=False`, a success neither closes the breaker nor
        is recorded, as it may be cached.
        """
        return Call(self, operation, proves)

    def enter(self) -> bool:
        """True if this call is the one that tries the server. Raises the refusal if the breaker is open."""
        if self._count < FAILURES:
            return False
        now = self.clock()
        if now < max(self._until, self._tried_at + PAUSE):
            raise self._refusal(f"{self.name} is skipped for some seconds, {self.state}")
        self._tried_at = now
        return True

    def ended_trying(self) -> None:
        """Let the next call try the server."""
        self._tried_at = -math.inf

    def reachable(self) -> None:
        """Close the breaker until the next failure: the server is reachable, but no call has shown that it works."""
        if self.state:
            log.warning("reachable again: %s", self.name)
            self._count = FAILURES - 1

    def worked(self) -> None:
        """Close the breaker."""
        if self.state:
            log.warning("works again: %s", self.name)
        self._count = 0
        self._worked_at = self.clock()

    def failed(self, error: AssistantError, began: float) -> None:
        """Count the failure of a call that began then; open the breaker after `FAILURES` of them.

        What a server that hung leaves behind fails for a while after it works again: a call that began before the last
        success says nothing, and one that began before the last failure doesn't make the pause longer.
        """
        if began < self._worked_at:
            return
        if not self._count:
            self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._count += 1
        self._last = str(error)
        if began >= self._until - PAUSE:
            self._until = self.clock() + PAUSE
        if self._count == FAILURES:
            log.warning("skipped for some seconds: %s, %s", self.name, self.state)


class Call:
    """The context manager of one call. On exit, it counts a failure or a success, records it and tells the observers."""

    __slots__ = ("_began", "_breaker", "_operation", "_proves", "_seconds", "_tries", "span")

    def __init__(self, breaker: Breaker, operation: str, proves: bool) -> None:
        self._breaker = breaker
        self._operation = operation
        self._proves = proves
        self._tries = False
        self._began = 0.0
        self._seconds: float | None = None
        self.span = spans.OFF

    def heard(self) -> None:
        """Report that the server doesn't hang: it sent something, such as reasoning."""
        self._breaker.waiting.pop(self, None)

    def worked(self) -> None:
        """Report a success before the end of the call, such as the first text of a stream."""
        now = self._breaker.clock()
        self.heard()
        self._seconds = now - self._began
        self._breaker.worked()
        self._breaker.record.succeeded(now, self._seconds)

    def __enter__(self) -> Self:
        self._tries = self._breaker.enter()
        self._began = self._breaker.waiting[self] = self._breaker.clock()
        self.span = spans.call(self._breaker.part, self._breaker.name, self._operation, self._breaker.facts)
        self.span.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.span.__exit__(kind, error, trace)
        breaker = self._breaker
        if self._tries:
            breaker.ended_trying()
        if isinstance(error, breaker.failures):
            breaker.failed(error, self._began)
        elif self._proves and (error is None or isinstance(error, AssistantError)):
            breaker.worked()
        waited = breaker.waiting.pop(self, None)
        if error is None or isinstance(error, Exception):
            self._end(breaker.clock(), error)
        elif self._seconds is not None:  # cancelled by a reader who left in mid-answer
            self._observe(self._seconds, None)
        elif waited is not None and breaker.is_too_long(waited):  # its reader lost patience
            now = breaker.clock()
            self._end(
                now,
                breaker.failures[-1](f"{breaker.name} said nothing for {now - waited:.0f} s; then its reader left."),
            )

    def _end(self, now: float, error: Exception | None) -> None:
        seconds = now - self._began if self._seconds is None else self._seconds
        if isinstance(error, NoIndex):  # the store answered
            error = None
        if error:
            self._breaker.record.failed(now, error)
        elif self._proves:
            self._breaker.record.succeeded(now, seconds)
        self._observe(seconds, error)

    def _observe(self, seconds: float, error: Exception | None) -> None:
        for observer in self._breaker.observers:
            observer(self._breaker.part, self._breaker.name, self._operation, seconds, error)


IDLE = 60.0
"""Seconds without a call after which the server is asked."""

INTERVAL = 30.0
"""Seconds between two times that it is asked."""

WAIT = 0.5
"""Seconds to wait for the result; a later one is seen the next time."""


class Probe:
    """Calls `ask` when it is due. `ask` costs nothing, ends within some seconds, and raises an `AssistantError`.

    `asked_at` is when it last had a result, and `error` what it raised; `failing_since` is its first failure in a row.
    """

    def __init__(self, ask: Callable[[], Awaitable[None]], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._next = -math.inf
        self._asking: Joined[None] = Joined()
        self.asked_at = -math.inf
        self.error: AssistantError | None = None
        self.failing_since: float | None = None

    async def look(self) -> None:
        """Ask if `INTERVAL` has passed, and wait a moment for the result."""
        if self._asking.running or self._clock() >= self._next:
            with suppress(StillRunning):
                await self._asking.get(self._look, WAIT)

    def answered(self, at: float) -> None:
        """Note that the server was reachable then."""
        self.asked_at, self.error, self.failing_since = at, None, None

    async def _look(self) -> None:
        self._next = self._clock() + INTERVAL
        try:
            await self._ask()
        except AssistantError as error:
            self.asked_at, self.error = self._clock(), error
            self.failing_since = self.failing_since or self.asked_at
        else:
            self.answered(self._clock())
