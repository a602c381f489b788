"""Limits how often each key and each address may ask, search and store, and how many answers it may get at the same time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from limits import RateLimitItem
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.access import Access
from app.api.middleware.clients import is_own_machine, network
from app.api.middleware.counters import Counters, Lease
from app.api.middleware.forwarded import route_path
from app.api.middleware.rates import Standing
from app.api.middleware.requestlog import info_of
from app.core.errors import LimitReached
from app.core.rates import parse_rates
from app.core.settings import Settings

QUESTIONS = frozenset({"/v1/chat/completions", "/v1/responses"})
SEARCHES = frozenset({"/v1/search", "/mcp"})
PASSAGES = "/v1/passages/"
CHANGES = ("/v1/conversations", "/v1/answers/")
"""What stores something without asking: conversations and ratings."""
SEARCHES_PER_QUESTION = 10
"""How many times as many searches as questions a rate allows: a page that searches as one types sends several a second."""
WAIT = 5
"""Seconds after which a client may try again if all its answers are in progress."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A key or an address with its limits; an empty `rate` and a `concurrency` of 0 are none."""

    name: str
    rate: str
    concurrency: int


class Limits:
    """ASGI middleware: raises `LimitReached` for questions, searches and changes beyond a limit, before their body is read.

    `access` says who asks, and raises an error without a valid key.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, counters: Counters, access: Callable[[Request], Access]
    ) -> None:
        self._app = app
        self._settings = settings
        self._counters = counters
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request within the limits."""
        kind = _kind(scope)
        holders = list(self._holders(self._access(Request(scope)), scope)) if kind else []
        if not holders:
            await self._app(scope, receive, send)
            return
        give_back = await self._place(holders) if kind == "questions" else None
        try:
            if rates := [(rate, one.name) for one in holders for rate in _rates(one.rate, kind)]:
                standing = await self._counters.hit(rates)
                if not standing.admitted:
                    raise _too_many(standing, kind)
                info_of(Request(scope)).headers.update(_headers(standing))
            await self._app(scope, receive, send)
        finally:
            if give_back:
                give_back()

    def _holders(self, access: Access, scope: Scope) -> Iterator[Holder]:
        """The key, and the address if nobody else uses the key or everybody does."""
        rate, concurrency = self._settings.rate_limit, self._settings.concurrency_limit
        if is_own_machine(scope):
            rate, concurrency = "", 0
        if access.owner:
            own = access.role == "reader"
            yield Holder(
                f"key:{access.owner}",
                access.rate or (rate if own else ""),
                access.concurrency or (concurrency if own else 0),
            )
        if access.role == "widget" or not (access.owner or access.role == "admin"):
            yield Holder(f"address:{network(scope)}", rate, concurrency)

    async def _place(self, holders: Sequence[Holder]) -> Lease | None:
        """A place for an answer; None if nobody limits them. Raises `LimitReached`."""
        places = [(one.name, one.concurrency) for one in holders if one.concurrency]
        if not places:
            return None
        if lease := await self._counters.acquire(places):
            return lease
        fewest = min(limit for _, limit in places)
        raise LimitReached(
            f"At most {fewest} answer{'s' if fewest > 1 else ''} at the same time {'are' if fewest > 1 else 'is'} allowed for your key or"
            f" address. Wait until one has ended, or try again in {WAIT} s.",
            retry_after=WAIT,
        )


def _kind(scope: Scope) -> str:
    """What the request asks for, if that is limited; else empty."""
    if scope["type"] != "http":
        return ""
    path, method = route_path(scope), scope["method"]
    if method == "POST" and path in QUESTIONS:
        return "questions"
    if method in {"GET", "POST"} and (path in SEARCHES or path.startswith(PASSAGES)):
        return "searches"
    return "changes" if method == "POST" and path.startswith(CHANGES) else ""


@lru_cache(maxsize=256)
def _rates(text: str, kind: str) -> tuple[RateLimitItem, ...]:
    """The rates for this kind of request; each kind is counted apart."""
    factor = SEARCHES_PER_QUESTION if kind == "searches" else 1
    return tuple(type(rate)(rate.amount * factor, rate.multiples, kind) for rate in parse_rates(text))


def _too_many(standing: Standing, kind: str) -> LimitReached:
    rate, seconds = standing.rate, max(1, math.ceil(standing.seconds))
    unit = rate.GRANULARITY.name
    period = unit if rate.multiples == 1 else f"{rate.multiples} {unit}s"
    return LimitReached(
        f"At most {rate.amount} {kind} per {period} are allowed for your key or address. Try again in {seconds} s.",
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
