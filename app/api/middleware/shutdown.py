"""Shutdown: first the service leaves its balancer and answers on, then it refuses new requests (`app.cli.server`)."""

from __future__ import annotations

from functools import partial

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.forwarded import route_path

READY = "/health/ready"


class Shutdown:
    """ASGI middleware: while `app.state.leaving` is set, /health/ready answers 503 and connections are closed after their
    response, so that clients connect to another instance; while `app.state.stopping` is set, all requests get a 503.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request. Raises `HTTPException` if it is refused."""
        if scope["type"] == "http":
            state = scope["app"].state
            leaving, stopping = getattr(state, "leaving", False), getattr(state, "stopping", False)
            if stopping or (leaving and route_path(scope) == READY):
                raise shutdown_error()
            if leaving:
                send = partial(_send_and_close, send)
        await self._app(scope, receive, send)


async def _send_and_close(send: Send, message: Message) -> None:
    if message["type"] == "http.response.start":
        MutableHeaders(scope=message)["connection"] = "close"
    await send(message)


def shutdown_error() -> HTTPException:
    """The error for a request that arrives during shutdown or exceeds the drain timeout."""
    headers = {"retry-after": "5", "connection": "close"}
    return HTTPException(503, "The service is stopping. Try again in a few seconds.", headers)
