"""Counts requests over time with the library limits: in this process, or in Redis for all instances."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from limits import RateLimitItem
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import MovingWindowRateLimiter

SWEEP = 1000
"""Requests between two searches for windows that are over; more if there are more windows."""

Rate = tuple[RateLimitItem, str]
"""A rate, and the name of the key or address that it counts for."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a request stands to the tightest of its rates: what is allowed, what remains, and the seconds until one more is."""

    rate: RateLimitItem
    remaining: int
    seconds: float
    admitted: bool = False


class Windows(MemoryStorage):
    """The library's storage without its task per request, which visits every window in a thread of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[str, tuple[int, deque[float]]] = {}
        self._until_sweep = SWEEP

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Whether these requests are within the limit; then they are counted."""
        now = time.time()
        self._sweep(now)
        window = self._window(key, expiry, now)
        if len(window) + amount > limit:
            return False
        window.extend([now] * amount)
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002  # the library's method
        """The time of the oldest request that counts, or now, and the number of those that count."""
        now = time.time()
        window = self._window(key, expiry, now)
        return (window[0] if window else now), len(window)

    def _window(self, key: str, expiry: int, now: float) -> deque[float]:
        _, window = self._windows.setdefault(key, (expiry, deque()))
        while window and window[0] < now - expiry:
            window.popleft()
        return window

    def _sweep(self, now: float) -> None:
        self._until_sweep -= 1
        if self._until_sweep > 0:
            return
        over = [key for key, (expiry, window) in self._windows.items() if not window or window[-1] < now - expiry]
        for key in over:
            del self._windows[key]
        self._until_sweep = max(SWEEP, len(self._windows))


class Rates:
    """Counts requests in moving windows: in any period as long as a rate's, no more than it allows. Raises the errors of
    the storage.
    """

    def __init__(self, storage: Storage) -> None:
        self._limiter = MovingWindowRateLimiter(storage)

    async def hit(self, rates: Sequence[Rate]) -> Standing:
        """Count a request for all of these rates, or for none if one doesn't admit it."""
        before = [await self._standing(rate, name) for rate, name in rates]
        if spent := [one for one in before if not one.remaining]:
            return max(spent, key=lambda one: one.seconds)
        for rate, name in rates:
            if not await self._limiter.hit(rate, name):  # another request came first
                return await self._standing(rate, name)
        tightest = min(before, key=lambda one: one.remaining / one.rate.amount)
        left = tightest.remaining - 1
        seconds = tightest.seconds if left < tightest.rate.amount - 1 else float(tightest.rate.get_expiry())
        return Standing(tightest.rate, left, seconds, admitted=True)

    async def _standing(self, rate: RateLimitItem, name: str) -> Standing:
        reset, remaining = await self._limiter.get_window_stats(rate, name)
        return Standing(rate, max(0, remaining), max(0.0, reset - time.time()))
