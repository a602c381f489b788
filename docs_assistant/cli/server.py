"""uvicorn with a graceful shutdown: the balancer notices first, then answers in progress may finish."""

import asyncio
import math
import socket
import time
from collections.abc import Callable, Coroutine

import uvicorn
from fastapi import FastAPI

from docs_assistant.cli import tracing

NOTICE = 6.0
"""Seconds in which a service that stops goes on answering, so that a balancer notices: three checks, one every 2 s."""
CHECKED = 30.0
"""A balancer is there if somebody asked for /health/ready in so many seconds before the stop."""
DRAIN_TIMEOUT = 60.0
"""Seconds that answers in progress have to finish; then they are cancelled and end with an error."""


class Server(uvicorn.Server):
    """Serves the application, which stops in two steps (see `app.http.door`); a second Ctrl-C skips them.

    `started` is called once it serves, and doesn't delay requests.
    """

    def __init__(
        self,
        app: FastAPI,
        config: uvicorn.Config,
        drain_timeout: float = DRAIN_TIMEOUT,
        started: Callable[[], Coroutine[None, None, None]] | None = None,
    ) -> None:
        super().__init__(config)
        config.timeout_graceful_shutdown = 1
        self._state = app.state
        self._drain_timeout = drain_timeout
        self._started = started
        self._announcing: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, then call `started`."""
        await super().startup(sockets)
        if self._started and self.started:
            self._announcing = asyncio.create_task(self._started())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for a balancer that checks the service, then for answers in progress, then stop."""
        self._state.leaving = True
        if time.monotonic() - getattr(self._state, "checked", -math.inf) < CHECKED:
            await self._wait(NOTICE, lambda: False)
        self._state.stopping = True
        await self._wait(self._drain_timeout, lambda: not self.server_state.tasks)
        await super().shutdown(sockets)
        await asyncio.to_thread(tracing.stop)  # here: uvicorn ends the program with the signal that it received

    async def _wait(self, seconds: float, over: Callable[[], bool]) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not over() and not self.force_exit:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.1)
