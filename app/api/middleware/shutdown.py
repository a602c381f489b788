"""Rejects new requests during shutdown; requests in progress may finish within the drain timeout (`app.cli.server`)."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send


class Shutdown:
    """ASGI middleware: rejects requests with status 503 and Retry-After while `app.state.stopping` is set."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request. Raises `HTTPException` during shutdown."""
        if scope["type"] == "http" and getattr(scope["app"].state, "stopping", False):
            raise shutdown_error()
        await self._app(scope, receive, send)


def shutdown_error() -> HTTPException:
    """The error for a request that arrives during shutdown or exceeds the drain timeout."""
    return HTTPException(503, "The service is stopping. Try again in a few seconds.", {"retry-after": "5"})
