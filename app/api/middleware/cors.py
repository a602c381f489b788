"""Lets pages of allowed origins ask: answers the preflights of browsers, and lets their scripts read answers and errors.

Nobody is identified by cookies here, so a page can do with these headers what it could do from a server of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.forwarded import route_path

SHARED = ("chat/completions", "search", "models", "interface", "answers", "passages", "conversations")
"""Routes below /v1/ that pages of other origins may use: what readers need, and nothing for operators."""
REFUSALS = (401, 403)
HOURS = 2
"""Browsers ask for permission again after this time; Chromium allows no more."""


class AllowedOrigins:
    """The origins whose pages may use the routes in `SHARED`: those of DOCS_ORIGINS, and those that keys have now.

    Pages of keys that were removed (`of_removed_keys`) may only read that they are refused.
    """

    def __init__(
        self,
        allowed: Iterable[str],
        of_keys: Callable[[], Collection[str]] = frozenset,
        of_removed_keys: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self._allowed = frozenset(allowed)
        self._of_keys = of_keys
        self._of_removed_keys = of_removed_keys

    def allowed(self, scope: Scope, origin: str) -> bool:
        """Whether a page of this origin may send this request."""
        return is_shared(scope) and self.known(origin)

    def known(self, origin: str) -> bool:
        """Whether pages of this origin may ask, where the route is a shared one."""
        return is_among(origin, self._allowed) or is_among(origin, self._of_keys())

    def may_read_refusals(self, origin: str) -> bool:
        """Whether pages of this origin may read why they are refused."""
        return self.known(origin) or is_among(origin, self._of_removed_keys())


def is_among(origin: str, allowed: Collection[str]) -> bool:
    """Whether one of the allowed origins is this one; `https://*.example.org` is any name below example.org."""
    return origin in allowed or any(
        origin.startswith(scheme) and origin.endswith(name) and "/" not in origin[len(scheme) :]
        for scheme, name in (one.split("*") for one in allowed if "://*." in one)
    )


class Cors(CORSMiddleware):
    """ASGI middleware outside of the request log, so that browsers let pages read its errors, too."""

    def __init__(self, app: ASGIApp, origins: AllowedOrigins) -> None:
        super().__init__(
            app,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("Authorization", "Cache-Control", "Content-Type", "X-Request-ID", "X-Conversation-ID"),
            expose_headers=("Age", "Retry-After", "X-Request-ID"),
            max_age=HOURS * 3600,
            # an allowed page on the internet may ask a service in the network of its reader
            allow_private_network=True,
        )
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request. A preflight that isn't allowed goes on to the checks, whose error says what to do."""
        if scope["type"] == "http" and is_shared(scope) and self._applies(scope):
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _applies(self, scope: Scope) -> bool:
        origin = Headers(scope=scope).get("origin", "")
        if scope["method"] == "OPTIONS":
            return self._origins.may_read_refusals(origin)
        # a response to GET may be kept, and must say that it depends on the origin; each event of a stream would cost a call
        return bool(origin) or scope["method"] == "GET"

    def is_allowed_origin(self, origin: str) -> bool:
        """Whether pages of this origin may send a request, if only to read why it is refused."""
        return self._origins.may_read_refusals(origin)

    async def send(self, message: Message, send: Send, request_headers: Headers) -> None:
        """Send a part of the response. Pages of a removed key can read it only if it is a refusal."""
        origin = request_headers.get("origin")
        hidden = message["type"] == "http.response.start" and message["status"] not in REFUSALS
        if origin and hidden and not self._origins.known(origin):
            request_headers = Headers()
        await super().send(message, send, request_headers)


def is_shared(scope: Scope) -> bool:
    """Whether the request is for a route in `SHARED`."""
    route = route_path(scope)
    return any(f"{route}/".startswith(f"/v1/{shared}/") for shared in SHARED)
