"""uvicorn with a graceful shutdown: answers in progress may finish within the drain timeout."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from app.cli import tracing

DRAIN_TIMEOUT = 10.0
"""Seconds that answers in progress have to finish; then they are cancelled and end with an error."""


class Server(uvicorn.Server):
    """Serves the application, which rejects new requests during shutdown (see `app.api.middleware.shutdown`).

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
        self._app = app
        self._drain_timeout = drain_timeout
        self._started = started
        self._announcing: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, then call `started`."""
        await super().startup(sockets)
        if self._started and self.started:
            self._announcing = asyncio.create_task(self._started())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for answers in progress, then stop."""
        self._app.state.stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._drain_timeout):
                while self.server_state.tasks and not self.force_exit:  # noqa: ASYNC110 - uvicorn has no event for it
                    await asyncio.sleep(0.1)
        await super().shutdown(sockets)
        await asyncio.to_thread(tracing.stop)  # here: uvicorn ends the program with the signal that it received
