"""Asks a server now and then whether it is reachable, because without calls nobody notices that it is down."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from app.core.errors import AssistantError

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
        self._asking: asyncio.Task[None] | None = None
        self.asked_at = -math.inf
        self.error: AssistantError | None = None
        self.failing_since: float | None = None

    async def look(self) -> None:
        """Ask if `INTERVAL` has passed, and wait a moment for the result."""
        if self._clock() >= self._next:
            self._next = self._clock() + INTERVAL
            self._asking = asyncio.create_task(self._look())
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=WAIT)

    def answered(self, at: float) -> None:
        """Note that the server was reachable then."""
        self.asked_at, self.error, self.failing_since = at, None, None

    async def _look(self) -> None:
        try:
            await self._ask()
        except AssistantError as error:
            self.asked_at, self.error = self._clock(), error
            self.failing_since = self.failing_since or self.asked_at
        else:
            self.answered(self._clock())
