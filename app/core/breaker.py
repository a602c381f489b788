"""A circuit breaker: what failed several times in a row isn't asked for a while, so that nobody waits for it in vain."""

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
"""In a row: a server that fails now and then is still worth asking."""

REST = 10.0
"""Seconds before one call tries again."""


class Breaker:
    """Lets calls through; after `FAILURES` failures in a row one at a time, and only when `REST` seconds have gone by.

    `failures` are the errors that count, `refusal` is the one raised instead of a call. Any other error of ours is an
    answer, such as a 429, and so is a success.
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
        """Empty while calls go through; else since when they don't, and why."""
        return f"failing since {self._since}: {self._last}" if self._count >= FAILURES else ""

    def call(self, *, proves: bool = True) -> Call:
        """Around a call. Unless it `proves`, its success says nothing of others, as that of one answered from memory."""
        return Call(self, proves)

    def enter(self) -> bool:
        """Whether this call is the one that tries; raises the refusal where none may."""
        if self._count < FAILURES:
            return False
        if self._trying or self._clock() < self._until:
            raise self._refusal(f"{self.name} isn't asked for some seconds, {self.state}")
        self._trying = True
        return True

    def ended_trying(self) -> None:
        """The next call may try."""
        self._trying = False

    def worked(self) -> None:
        """It answered."""
        if self.state:
            log.warning("answers again: %s", self.name)
        self._count = 0

    def failed(self, error: AssistantError) -> None:
        """It didn't."""
        if not self._count:
            self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._count += 1
        self._last = str(error)
        self._until = self._clock() + REST
        if self._count == FAILURES:
            log.warning("not asked for a while: %s, %s", self.name, self.state)


class Call:
    """One call under way; leaving the context with an error or without tells its outcome."""

    __slots__ = ("_breaker", "_proves", "_tries")

    def __init__(self, breaker: Breaker, proves: bool) -> None:
        self._breaker = breaker
        self._proves = proves
        self._tries = False

    def worked(self) -> None:
        """It is known before the end that it answers."""
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
