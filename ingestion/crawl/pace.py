"""Limits of requests to one host: how many at once, and the time between two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Pace:
    """The turns of one host; `delay` in seconds may be raised while running."""

    def __init__(self, parallel: int, delay: float) -> None:
        self.delay = delay
        self._slots = asyncio.Semaphore(parallel)
        self._gate = asyncio.Lock()
        self._next = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a free slot and for the host's delay to pass."""
        async with self._slots:
            if self.delay > 0:
                async with self._gate:
                    clock = asyncio.get_running_loop()
                    await asyncio.sleep(max(0.0, self._next - clock.time()))
                    self._next = clock.time() + self.delay
            yield
