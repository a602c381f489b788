"""Which requests are answered when more come than can be, and for how long one may be answered.

A refusal costs next to nothing: it comes before the body is read. Addresses that ask no question never wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.errors import AnswerTimeout
from app.core.gate import Gate
from app.core.settings import Settings

T = TypeVar("T")

ANSWER_PATHS = frozenset({"/v1/chat/completions", "/v1/responses", "/v1/search", "/mcp"})
UNTIL_FIRST_TEXT = 4
"""Times a language model's timeout until the first text: helper calls, thinking for three of them, and the extract."""

WHOLE = 10
"""Times a language model's timeout for an answer that goes on: 1,500 tokens of a slow one."""


class Admission:
    """ASGI middleware: refuses questions while the gate is full."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request. Raises `Overloaded`, with the body unread."""
        if self._gate.full and scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in ANSWER_PATHS:
            raise self._gate.refusal()
        await self._app(scope, receive, send)


class Deadline:
    """When an answer must have begun, and once it has, when it must be over."""

    def __init__(self, limit: asyncio.Timeout, whole: float) -> None:
        self._limit = limit
        self._until = asyncio.get_running_loop().time() + whole

    def began(self) -> None:
        """The first text is there."""
        self._limit.reschedule(self._until)


@dataclass(frozen=True)
class AnswerLimits:
    """What all answers share. Times in seconds."""

    gate: Gate = field(default_factory=lambda: Gate(1))
    first_text: float = 240.0
    whole: float = 600.0

    @classmethod
    def of(cls, settings: Settings, llm_timeout: float) -> Self:
        """Those of a service."""
        return cls(Gate(settings.max_answers), UNTIL_FIRST_TEXT * llm_timeout, WHOLE * llm_timeout)

    @asynccontextmanager
    async def answer(self) -> AsyncIterator[Deadline]:
        """Around the work of one answer, which begins when its turn comes. Raises `Overloaded` and `AnswerTimeout`."""
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
    """What the work gives. Raises `ClientDisconnect` when the client leaves before, and then the work is cancelled."""
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
