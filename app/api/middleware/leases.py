"""Counts the answers in progress of each key and address: in this process, or in Redis for all instances.

In Redis, an answer has a lease that its instance renews, so that the places of a killed instance are free again soon.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis.asyncio import Redis

LEASE = 30.0
"""Seconds for which a lease in Redis is valid without being renewed."""

# sorted sets of leases by the time at which they end, on the clock of Redis
ACQUIRE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  if redis.call('ZCARD', key) >= tonumber(ARGV[2 + i]) then return i end
end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + ARGV[2], ARGV[1])
  redis.call('EXPIRE', key, math.ceil(ARGV[2]))
end
return 0
"""
# XX: a renewal doesn't bring back a lease that was released meanwhile
RENEW = """
local time = redis.call('TIME')
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, 'XX', time[1] + time[2] / 1000000 + ARGV[2], ARGV[1])
  redis.call('EXPIRE', key, math.ceil(ARGV[2]))
end
"""
PREFIX = "docs-assistant:answers:"

Places = Sequence[tuple[str, int]]
"""What an answer takes a place of, and how many there are: names of keys and addresses with their limits."""


class MemoryLeases:
    """Counts in this process."""

    def __init__(self) -> None:
        self._taken = Counter[str]()
        self._held: dict[str, list[str]] = {}
        self._number = 0

    def acquire(self, places: Places) -> str:
        """Take one of each of the places and return the id of the lease; empty if one has none left, and none is taken then."""
        if any(self._taken[name] >= limit for name, limit in places):
            return ""
        self._number += 1
        lease = str(self._number)
        self._held[lease] = [name for name, _ in places]
        self._taken.update(self._held[lease])
        return lease

    def release(self, lease: str) -> None:
        """Give the places of this lease back."""
        for name in self._held.pop(lease):
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]


class RedisLeases:
    """Counts in Redis. Raises the errors of its client."""

    def __init__(self, redis: Redis, seconds: float = LEASE) -> None:
        self._redis = redis
        self._seconds = seconds
        self._acquire = redis.register_script(ACQUIRE)
        self._renew = redis.register_script(RENEW)
        self._held: dict[str, list[str]] = {}
        self._renewing: asyncio.Task[None] | None = None

    async def acquire(self, places: Places) -> str:
        """As `MemoryLeases.acquire`."""
        lease, names = secrets.token_hex(8), [PREFIX + name for name, _ in places]
        if await self._acquire(names, [lease, self._seconds, *(limit for _, limit in places)]):
            return ""
        self._held[lease] = names
        if not self._renewing or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew_all())
        return lease

    async def release(self, lease: str) -> None:
        """As `MemoryLeases.release`."""
        for name in self._held.pop(lease):
            await self._redis.zrem(name, lease)

    async def close(self) -> None:
        """Stop renewing."""
        if self._renewing:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)

    async def _renew_all(self) -> None:
        from redis.exceptions import RedisError

        while self._held:
            await asyncio.sleep(self._seconds / 3)
            for lease, names in list(self._held.items()):
                if lease in self._held:
                    # an error here also shows in the next request; the lease lives for two more renewals
                    with contextlib.suppress(RedisError, TimeoutError, OSError):
                        await self._renew(names, [lease, self._seconds])
