"""A circuit breaker: after several failures in a row, calls to a server fail at once instead of waiting for it.

Every call to a model, embedder, reranker or store goes through one, so it also knows how the calls went, and tells observers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Protocol, Self

from app.core import spans
from app.core.errors import AssistantError, NoIndex

log = logging.getLogger("app.breaker")

FAILURES = 5
"""Failures in a row that open the breaker: a server that fails now and then is still called."""

PAUSE = 10.0
"""Seconds for which the breaker stays open; after that, one call tries the server."""

Part = Literal["model", "embedder", "reranker", "store"]


class OnCall(Protocol):
    """An observer of calls, in `Breaker.observers`."""

    def __call__(self, part: Part, name: str, operation: str, seconds: float, error: Exception | None) -> None:
        """Is called at the end of each call, in the event loop, and must neither wait nor raise.

        `name` is that of the breaker, `operation` the called method. `seconds` is the duration; of a stream, the time to
        its first text if there was one. `error` is None after a success, which may have come from a cache. Not observed
        are calls that an open breaker refused, and those that were cancelled before they returned anything.
        """
        ...


class Record:
    """What is known of the calls so far. Times are those of `clock`; `latency` of the last success is in seconds."""

    __slots__ = ("error", "failures", "last_failure", "last_success", "latency")

    def __init__(self) -> None:
        self.last_success: float | None = None
        self.latency = 0.0
        self.last_failure: float | None = None
        self.error = ""
        self.failures = 0

    def succeeded(self, now: float, seconds: float) -> None:
        """Note a success."""
        self.last_success, self.latency, self.failures = now, seconds, 0

    def failed(self, now: float, error: Exception) -> None:
        """Note a failure."""
        self.last_failure, self.error = now, str(error) or type(error).__name__
        self.failures += 1


class Breaker:
    """Opens after `FAILURES` failures in a row. While it is open, one call every `PAUSE` seconds may try the server.

    `failures` are the errors that count as failures; all other `AssistantError`s, such as for status 429, count as
    successes. While the breaker is open, calls raise a `refusal`.
    """

    def __init__(
        self,
        part: Part,
        name: str,
        failures: tuple[type[AssistantError], ...],
        refusal: type[AssistantError],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.part = part
        self.name = name
        self.failures = failures
        self.record = Record()
        self.observers: list[OnCall] = []
        self.facts: spans.Facts = {}  # for the spans of calls
        self.clock = clock
        self._refusal = refusal
        self._count = 0
        self._since = ""
        self._last = ""
        self._until = 0.0
        self._trying = False

    @property
    def state(self) -> str:
        """Empty while the breaker is closed; otherwise the time and the error that opened it."""
        return f"failing since {self._since}: {self._last}" if self._count >= FAILURES else ""

    def call(self, operation: str, *, proves: bool = True) -> Call:
        """A context manager for one call of this method. With `proves=False`, a success neither closes the breaker nor
        is recorded, as it may be cached.
        """
        return Call(self, operation, proves)

    def enter(self) -> bool:
        """Whether this call is the one that tries the server. Raises the refusal if the breaker is open."""
        if self._count < FAILURES:
            return False
        if self._trying or self.clock() < self._until:
            raise self._refusal(f"{self.name} is skipped for some seconds, {self.state}")
        self._trying = True
        return True

    def ended_trying(self) -> None:
        """Let the next call try the server."""
        self._trying = False

    def worked(self) -> None:
        """Close the breaker."""
        if self.state:
            log.warning("works again: %s", self.name)
        self._count = 0

    def failed(self, error: AssistantError) -> None:
        """Count a failure; open the breaker after `FAILURES` of them."""
        if not self._count:
            self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._count += 1
        self._last = str(error)
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

    def worked(self) -> None:
        """Report a success before the end of the call, such as the first text of a stream."""
        now = self._breaker.clock()
        self._seconds = now - self._began
        self._breaker.worked()
        self._breaker.record.succeeded(now, self._seconds)

    def __enter__(self) -> Self:
        self._tries = self._breaker.enter()
        self._began = self._breaker.clock()
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
            breaker.failed(error)
        elif self._proves and (error is None or isinstance(error, AssistantError)):
            breaker.worked()
        if error is None or isinstance(error, Exception):
            self._end(breaker.clock(), error)
        elif self._seconds is not None:  # cancelled by a reader who left in mid-answer
            self._observe(self._seconds, None)

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
