"""Limits how often each key and each address may ask, search and store, and how many answers it may get at the same time; all answers
together have a limit of their own, and each has a longest duration.

Requests over time are counted in this process, or in Redis for all instances; answers in progress always in this process.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from limits import RateLimitItem
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import MovingWindowRateLimiter
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

from app.core.breaker import Breaker
from app.core.errors import AnswerTimeout, LimitReached, LimitsUnavailable, SettingsError
from app.core.gate import Gate
from app.core.log_message import masked
from app.core.settings import WHOLE_ANSWER, Settings
from app.core.settings_types import parse_rates
from app.http.door import info_of, is_own_machine, network, route_path
from app.http.keys import Access

if TYPE_CHECKING:
    from redis.asyncio import Redis


SWEEP = 1000
"""Requests between two searches for windows that are over; more if there are more windows."""

Rate = tuple[RateLimitItem, str]
"""A rate, and the name of the key or address that it counts for."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Standing of a request in the tightest of its rates: what is allowed, what remains, and the seconds until one more is."""

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
        """True if these requests are within the limit; then they are counted."""
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
        try:
            pool = BlockingConnectionPool.from_url(address, max_connections=CONNECTIONS)
        except ValueError:
            raise SettingsError(
                "DOCS_LIMITS_STORE is no address of a Redis server, such as redis://:password@host:6379/0."
            ) from None  # its text may have a part of the password
        self._redis: Redis = Redis(connection_pool=pool)
        storage = RedisStorage(f"async+{address}", implementation="redispy", key_prefix=PREFIX, connection_pool=pool)  # type: ignore[arg-type]  # documented, but typed as an option
        self._rates = Rates(storage)
        self.breaker = Breaker("limits", masked(address), (LimitsUnavailable,), LimitsUnavailable)

    async def hit(self, rates: Sequence[Rate]) -> Standing:
        """As `Rates.hit`, in Redis."""
        from redis.exceptions import RedisError

        async with self._turns:
            with self.breaker.call("hit"):
                try:
                    async with asyncio.timeout(PATIENCE):
                        return await self._rates.hit(rates)
                except (RedisError, OSError) as error:  # TimeoutError is an OSError
                    reason = str(error) or f"no answer within {PATIENCE:g} s"
                    raise LimitsUnavailable(f"{self.breaker.name} can't be reached: {reason}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose(close_connection_pool=True)


Places = Sequence[tuple[str, int]]
"""Things that an answer takes a place of, with the number of places: names of keys, and addresses."""

Release = Callable[[], None]
"""Gives the places of an answer back."""


class Counters:
    """Counts requests and answers in progress. While Redis fails, this process counts its own, so that no request fails."""

    def __init__(self, store: str) -> None:
        self._shared = None if store == "memory" else Shared(store)
        self._rates = Rates(Windows())
        self._taken = Counter[str]()
        self.breakers = (self._shared.breaker,) if self._shared else ()

    async def hit(self, rates: Sequence[Rate]) -> Standing:
        """Count a request for all of these rates, or for none if one doesn't admit it."""
        if self._shared:
            try:
                return await self._shared.hit(rates)
            except LimitsUnavailable:
                pass  # the breaker logs it, and /health shows it
        return await self._rates.hit(rates)

    def acquire(self, places: Places) -> Release | None:
        """Take one of each of these places; None if one of them has none left, and none is taken then."""
        if any(self._taken[name] >= limit for name, limit in places):
            return None
        names = [name for name, _ in places]
        self._taken.update(names)
        return partial(self._release, names)

    async def close(self) -> None:
        """Close the connections."""
        if self._shared:
            await self._shared.close()

    def _release(self, names: Sequence[str]) -> None:
        self._taken -= Counter(names)  # drops names of which no place is taken


QUESTIONS = frozenset({"/v1/chat/completions", "/v1/responses"})
SEARCHES = frozenset({"/v1/search", "/mcp"})
ANSWER_PATHS = QUESTIONS | SEARCHES
LINKS = "/v1/shared/"
SIGN_IN = "/sign-in/"
READS = ("/v1/passages/", LINKS)
CHANGES = ("/v1/conversations", "/v1/answers/")
"""Paths that store something without asking: conversations and ratings."""
SEARCHES_PER_QUESTION = 10
"""The number of searches that a rate allows for each question: a page that searches as one types sends several a second."""
WAIT = 5
"""Seconds after which a client may try again if all its answers are in progress."""


Holder = tuple[str, str, int]
"""A key or an address with its rate and its concurrency; an empty rate and a concurrency of 0 are none."""


class Limits:
    """Counts questions, searches, changes and ways to sign in before their body is read, and refuses those beyond a limit.

    `access` says who asks, and raises an error without a valid key.
    """

    def __init__(self, settings: Settings, gate: Gate, counters: Counters, access: Callable[[Request], Access]) -> None:
        self._settings = settings
        self._gate = gate
        self._counters = counters
        self._access = access

    async def enter(self, request: Request) -> Release | None:
        """Count the request; returns what gives its place back. Raises `Overloaded` or `LimitReached`."""
        kind = _kind(request.scope)
        if not kind:
            return None
        access = Access() if route_path(request.scope).startswith((LINKS, SIGN_IN)) else self._access(request)
        # the key first: a refusal shortens the queue, so that clients without a key could push out those who wait
        if self._gate.full and route_path(request.scope) in ANSWER_PATHS:
            raise self._gate.refusal()
        holders = list(self._holders(access, request.scope))
        release = self._place(holders) if kind == "questions" else None
        try:
            rates = [(rate, name) for name, text, _ in holders for rate in _rates(text, kind)]
            standing = await self._counters.hit(rates) if rates else None
        except BaseException:
            if release:
                release()
            raise
        if standing and not standing.admitted:
            if release:
                release()
            raise _too_many(standing)
        info_of(request).headers.update(_headers(standing) if standing else {})
        return release

    def _holders(self, access: Access, scope: Scope) -> Iterator[Holder]:
        """The key, and the address if nobody else uses the key or everybody does."""
        rate, concurrency = self._settings.rate_limit, self._settings.concurrency_limit
        if is_own_machine(scope):
            rate, concurrency = "", 0
        if access.owner:
            own_rate, own_concurrency = (rate, concurrency) if access.role == "reader" else ("", 0)
            yield f"key:{access.owner}", access.rate or own_rate, access.concurrency or own_concurrency
        if access.role == "widget" or not (access.owner or access.role == "admin"):
            yield f"address:{network(scope)}", rate, concurrency

    def _place(self, holders: Sequence[Holder]) -> Release | None:
        """A place for an answer; None if nobody limits them. Raises `LimitReached`."""
        places = [(name, concurrency) for name, _, concurrency in holders if concurrency]
        if not places:
            return None
        if release := self._counters.acquire(places):
            return release
        fewest = min(limit for _, limit in places)
        raise LimitReached(
            f"At most {fewest} answer{'s' if fewest > 1 else ''} at the same time {'are' if fewest > 1 else 'is'} allowed for your key or"
            f" address. Wait until one has ended, or try again in {WAIT} s.",
            retry_after=WAIT,
        )


def _kind(scope: Scope) -> str:
    """Returns the kind of the request, if that is limited; else an empty string."""
    path, method = route_path(scope), scope["method"]
    if path in QUESTIONS:
        return "questions" if method == "POST" else ""
    if method in {"GET", "POST"} and (path in SEARCHES or path.startswith(READS)):
        return "searches"
    if path.startswith(SIGN_IN):
        return "sign-ins"
    return "changes" if method == "POST" and path.startswith(CHANGES) else ""


@lru_cache(maxsize=256)
def _rates(text: str, kind: str) -> tuple[RateLimitItem, ...]:
    """The rates for this kind of request; each kind is counted apart."""
    factor = SEARCHES_PER_QUESTION if kind == "searches" else 1
    return tuple(type(rate)(rate.amount * factor, rate.multiples, kind) for rate in parse_rates(text))


def _too_many(standing: Standing) -> LimitReached:
    rate, seconds = standing.rate, max(1, math.ceil(standing.seconds))
    unit = rate.GRANULARITY.name
    period = unit if rate.multiples == 1 else f"{rate.multiples} {unit}s"
    return LimitReached(
        f"At most {rate.amount} {rate.namespace} per {period} are allowed for your key or address. Try again in {seconds} s.",
        retry_after=seconds,
        headers=_headers(standing),
    )


def _headers(standing: Standing) -> dict[str, str]:
    """The headers of the OpenAI API."""
    minutes, seconds = divmod(math.ceil(standing.seconds), 60)
    return {
        "x-ratelimit-limit-requests": str(standing.rate.amount),
        "x-ratelimit-remaining-requests": str(standing.remaining),
        "x-ratelimit-reset-requests": f"{minutes}m{seconds}s" if minutes else f"{seconds}s",
    }


UNTIL_FIRST_TEXT = 4
"""Time limit for the first text, in timeouts of the language model: helper calls, thinking (three), and the extract."""


@dataclass
class AnswerLimits:
    """Limits that all answers share. Times are in seconds."""

    gate: Gate = field(default_factory=lambda: Gate(1))
    first_text: float = 240.0
    whole: float = 600.0

    @classmethod
    def of(cls, settings: Settings, llm_timeout: float) -> Self:
        """The limits for these settings and the longest timeout of a language model."""
        limits = cls(Gate(settings.tuning.max_answers))
        limits.follow(llm_timeout)
        return limits

    def follow(self, llm_timeout: float) -> None:
        """Change the times of the next answers to those of this timeout of a language model."""
        self.first_text, self.whole = UNTIL_FIRST_TEXT * llm_timeout, WHOLE_ANSWER * llm_timeout

    @asynccontextmanager
    async def answer(self) -> AsyncIterator[Callable[[], None]]:
        """Context of one answer: waits for a free place, then limits the time. Raises `Overloaded` or `AnswerTimeout`.

        The function in it is to be called with the first text: from then on, the limit is that of the whole answer.
        """
        try:
            async with asyncio.timeout(self.first_text) as limit:
                until = asyncio.get_running_loop().time() + self.whole
                async with self.gate.place():
                    yield partial(limit.reschedule, until)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise AnswerTimeout(
                f"No text within {self.first_text:g} s, or no end within {self.whole:g} s. See which step is slow in a trace; "
                "both times follow DOCS_LLM_TIMEOUT."
            ) from error


async def cancel_on_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. If the client disconnects first, cancels it and raises `ClientDisconnect`."""
    working, watching = asyncio.create_task(work), asyncio.create_task(disconnected(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def disconnected(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
