"""What requests get while the service stops: new ones a 503, those under way the time to end, then an error."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send


class Shutdown:
    """ASGI middleware; once `begun` is set, requests are refused with a 503 that says when to come back."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request, or raise why not."""
        if scope["type"] == "http" and getattr(scope["app"].state, "stopping", False):
            raise shutdown_error()
        await self._app(scope, receive, send)


def shutdown_error() -> HTTPException:
    """What a request is answered that comes too late, or takes too long; an event of this in a stream."""
    return HTTPException(503, "The service is stopping. Try again in a few seconds.", {"retry-after": "5"})
