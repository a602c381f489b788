"""A circuit breaker: after several failures in a row, calls to a server fail at once instead of waiting for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from app.core.errors import AssistantError

log = logging.getLogger("app.breaker")

FAILURES = 5
"""Failures in a row that open the breaker: a server that fails now and then is still called."""

PAUSE = 10.0
"""Seconds for which the breaker stays open; after that, one call tries the server."""


class Breaker:
    """Opens after `FAILURES` failures in a row. While it is open, one call every `PAUSE` seconds may try the server.

    `failures` are the errors that count as failures; all other `AssistantError`s, such as for status 429, count as
    successes. While the breaker is open, calls raise a `refusal`.
    """

    def __init__(
        self,
        name: str,
        failures: tuple[type[AssistantError], ...],
        refusal: type[AssistantError],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.failures = failures
        self._refusal = refusal
        self._clock = clock
        self._count = 0
        self._since = ""
        self._last = ""
        self._until = 0.0
        self._trying = False

    @property
    def state(self) -> str:
        """Empty while the breaker is closed; otherwise the time and the error that opened it."""
        return f"failing since {self._since}: {self._last}" if self._count >= FAILURES else ""

    def call(self, *, proves: bool = True) -> Call:
        """A context manager for one call. With `proves=False`, a success doesn't close the breaker, as it may be cached."""
        return Call(self, proves)

    def enter(self) -> bool:
        """Whether this call is the one that tries the server. Raises the refusal if the breaker is open."""
        if self._count < FAILURES:
            return False
        if self._trying or self._clock() < self._until:
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
        self._until = self._clock() + PAUSE
        if self._count == FAILURES:
            log.warning("skipped for some seconds: %s, %s", self.name, self.state)


class Call:
    """The context manager of one call. It counts a failure or a success on exit."""

    __slots__ = ("_breaker", "_proves", "_tries")

    def __init__(self, breaker: Breaker, proves: bool) -> None:
        self._breaker = breaker
        self._proves = proves
        self._tries = False

    def worked(self) -> None:
        """Report a success before the end of the call."""
        self._breaker.worked()

    def __enter__(self) -> Self:
        self._tries = self._breaker.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tries:
            self._breaker.ended_trying()
        if isinstance(error, self._breaker.failures):
            self._breaker.failed(error)
        elif self._proves and (error is None or isinstance(error, AssistantError)):
            self._breaker.worked()
