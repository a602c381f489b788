"""Where requests are counted: in this process, or in Redis with this process as its substitute."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from app.api.middleware.leases import MemoryLeases, Places, RedisLeases
from app.api.middleware.rates import Rate, Rates, Standing, Windows
from app.core.breaker import Breaker
from app.core.errors import LimitsUnavailable, SettingsError
from app.core.masking import masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

T = TypeVar("T")
PATIENCE = 2.0
"""Seconds after which Redis doesn't answer."""
CONNECTIONS = 32
PREFIX = "docs-assistant"


class Shared:
    """Counts in Redis. Raises `LimitsUnavailable` if it fails; after several failures in a row it is skipped for some seconds."""

    def __init__(self, address: str) -> None:
        try:
            from limits.aio.storage import RedisStorage
            from redis.asyncio import BlockingConnectionPool, Redis
        except ImportError as error:
            raise SettingsError(
                "DOCS_LIMITS_STORE is a Redis server, but its client isn't installed: install docs-assistant[redis]."
            ) from error
        # 1,000 requests at the same time wait here, so that their patience begins with their call, and ends with the first
        # failures of others
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._returns = asyncio.Semaphore(
            CONNECTIONS
        )  # a place that is given back doesn't wait behind those who want one
        try:
            pool = BlockingConnectionPool.from_url(address, max_connections=2 * CONNECTIONS + 1)  # one to renew leases
        except ValueError:
            raise SettingsError(
                "DOCS_LIMITS_STORE is no address of a Redis server, such as redis://:password@host:6379/0."
            ) from None  # its text may have a part of the password
        self._redis: Redis = Redis(connection_pool=pool)
        storage = RedisStorage(f"async+{address}", implementation="redispy", key_prefix=PREFIX, connection_pool=pool)  # type: ignore[arg-type]  # documented, but typed as an option
        self.leases = RedisLeases(self._redis)
        self.rates = Rates(storage)
        self.breaker = Breaker("limits", masked(address), (LimitsUnavailable,), LimitsUnavailable)

    async def release(self, id_: str) -> None:
        """Give the places of this lease back."""
        await self._call("release", lambda: self.leases.release(id_), self._returns)

    async def call(self, operation: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result of this work with Redis."""
        return await self._call(operation, work, self._turns)

    async def _call(self, operation: str, work: Callable[[], Awaitable[T]], turns: asyncio.Semaphore) -> T:
        async with turns:
            with self.breaker.call(operation):
                return await self._in_time(work)

    async def _in_time(self, work: Callable[[], Awaitable[T]]) -> T:
        from redis.exceptions import RedisError

        try:
            async with asyncio.timeout(PATIENCE):
                return await work()
        except (RedisError, OSError) as error:  # TimeoutError is an OSError
            reason = str(error) or f"no answer within {PATIENCE:g} s"
            raise LimitsUnavailable(f"{self.breaker.name} can't be reached: {reason}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self.leases.close()
        await self._redis.aclose(close_connection_pool=True)


Lease = Callable[[], None]
"""Gives the places of an answer back."""


class Counters:
    """Counts requests and answers in progress. While Redis fails, this process counts its own, so that no request fails."""

    def __init__(self, store: str) -> None:
        self._shared = None if store == "memory" else Shared(store)
        self._rates = Rates(Windows())
        self._leases = MemoryLeases()
        self._releasing = set[asyncio.Task[None]]()
        self.breakers = (self._shared.breaker,) if self._shared else ()

    async def hit(self, rates: Sequence[Rate]) -> Standing:
        """Count a request for all of these rates, or for none if one doesn't admit it."""
        if shared := self._shared:
            try:
                return await shared.call("hit", lambda: shared.rates.hit(rates))
            except LimitsUnavailable:
                pass  # the breaker logs it, and /health shows it
        return await self._rates.hit(rates)

    async def acquire(self, places: Places) -> Lease | None:
        """Take one of each of these places; None if one of them has none left."""
        if shared := self._shared:
            try:
                id_ = await shared.call("acquire", lambda: shared.leases.acquire(places))
            except LimitsUnavailable:
                pass  # as above
            else:
                return partial(self._release, shared, id_) if id_ else None
        own = self._leases.acquire(places)
        return partial(self._leases.release, own) if own else None

    async def close(self) -> None:
        """Close the connections, after the last places were given back."""
        await asyncio.gather(*self._releasing)
        if self._shared:
            await self._shared.close()

    def _release(self, shared: Shared, id_: str) -> None:
        # not awaited: the task of a cancelled request must not wait for Redis
        task = asyncio.create_task(self._release_in(shared, id_))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def _release_in(self, shared: Shared, id_: str) -> None:
        with contextlib.suppress(LimitsUnavailable):  # then the lease ends by itself
            await shared.release(id_)
