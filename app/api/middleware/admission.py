"""Limits the number of concurrent answers and the duration of each.

An overloaded service rejects a request before it reads the body. Paths that don't ask a question are never limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.proxy_headers import route_path
from app.core.errors import AnswerTimeout
from app.core.gate import Gate
from app.core.settings import Settings

T = TypeVar("T")

ANSWER_PATHS = frozenset({"/v1/chat/completions", "/v1/responses", "/v1/search", "/mcp"})
UNTIL_FIRST_TEXT = 4
"""Time limit for the first text, in timeouts of the language model: helper calls, thinking (three), and the extract."""

WHOLE = 10
"""Time limit for a whole answer, in timeouts of the language model: 1,500 tokens of a slow one."""


class Admission:
    """ASGI middleware: rejects questions while the gate is full. `check_key` raises an error without a valid key."""

    def __init__(self, app: ASGIApp, gate: Gate, check_key: Callable[[Request], object]) -> None:
        self._app = app
        self._gate = gate
        self._check_key = check_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request. Raises `Overloaded` without reading the body."""
        if self._gate.full and scope["type"] == "http" and route_path(scope) in ANSWER_PATHS:
            # a refusal shortens the queue, so that clients without a key could push out those who wait
            self._check_key(Request(scope))
            raise self._gate.refusal()
        await self._app(scope, receive, send)


class Deadline:
    """The time limit of an answer: first for its first text, then for its end."""

    def __init__(self, limit: asyncio.Timeout, whole: float) -> None:
        self._limit = limit
        self._until = asyncio.get_running_loop().time() + whole

    def began(self) -> None:
        """Switch to the limit of the whole answer, once its first text has arrived."""
        self._limit.reschedule(self._until)


@dataclass(frozen=True)
class AnswerLimits:
    """Limits that all answers share. Times are in seconds."""

    gate: Gate = field(default_factory=lambda: Gate(1))
    first_text: float = 240.0
    whole: float = 600.0

    @classmethod
    def of(cls, settings: Settings, llm_timeout: float) -> Self:
        """The limits for these settings and the longest timeout of a language model."""
        return cls(Gate(settings.tuning.max_answers), UNTIL_FIRST_TEXT * llm_timeout, WHOLE * llm_timeout)

    @asynccontextmanager
    async def answer(self) -> AsyncIterator[Deadline]:
        """Context of one answer: waits for a free place, then limits the time. Raises `Overloaded` or `AnswerTimeout`."""
        try:
            async with asyncio.timeout(self.first_text) as limit:
                deadline = Deadline(limit, self.whole)
                async with self.gate.place():
                    yield deadline
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise AnswerTimeout(
                f"No text within {self.first_text:g} s, or no end within {self.whole:g} s. See which step is slow in a trace; "
                "both times follow DOCS_LLM_TIMEOUT."
            ) from error


async def cancel_on_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. If the client disconnects first, cancels it and raises `ClientDisconnect`."""
    working, watching = asyncio.create_task(work), asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


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
