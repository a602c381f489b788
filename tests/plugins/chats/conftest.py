"""A service behind a real socket, and a server that stands in for the one of the chat program."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from aiohttp import web
from fastapi import FastAPI

from app.conversations.opening import open_conversations
from app.core.settings import Settings
from app.http.connections import ConnectionLimits, Connections
from app.http.protocol import BoundedProtocol
from tests.app.routes.indexed import indexed
from tests.fake_llm import FakeLLM, Reply

SAID = "Create a persistent volume with a PersistentVolumeClaim of the class nfs-csi [1]."


@dataclass
class Outside:
    """Keeps what it is sent, and answers with the next of `answers`, or that all is well."""

    url: str = ""
    sent: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    answers: list[web.Response] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        self.sent.append((request.method, request.path, await request.json()))
        self.keys.append(request.headers.get("authorization"))
        return self.answers.pop(0) if self.answers else web.json_response({"ok": True})

    async def wait(self, count: int = 1) -> list[dict[str, Any]]:
        """The bodies, as soon as there are so many."""
        deadline = time.monotonic() + 60
        while len(self.sent) < count:
            assert time.monotonic() < deadline, self.sent
            await asyncio.sleep(0.02)
        return [body for _, _, body in self.sent]

    async def stays(self, count: int) -> bool:
        """True if nothing more comes."""
        await asyncio.sleep(0.4)
        return len(self.sent) == count


@dataclass
class Running:
    """A service that answers from two pages, and a client of it."""

    app: FastAPI
    http: httpx.AsyncClient
    llm: FakeLLM
    server: uvicorn.Server

    @property
    def read(self) -> str:
        """What the model was given to read since the last time, with the conversation."""
        calls, self.llm.calls = self.llm.calls, []
        return str(calls)


@pytest.fixture
async def outside() -> AsyncIterator[Outside]:
    there = Outside()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", there.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    there.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield there
    await runner.cleanup()


@asynccontextmanager
async def listening(app: FastAPI) -> AsyncIterator[tuple[str, uvicorn.Server]]:
    """The application in this loop, on a socket, as `serve` has it."""
    protocol = partial(BoundedProtocol, Connections(ConnectionLimits()))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", http=protocol, ws="none"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", server
        server.should_exit = True
        await task


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts a service with these settings; a conversation is kept as usual."""
    async with AsyncExitStack() as stack:

        async def started(**options: Any) -> Running:
            store = open_conversations(Settings.load(None, **options), tmp_path)
            if store:
                stack.push_async_callback(store.close)
            made = await stack.enter_async_context(indexed(tmp_path, conversations=store, **options))
            made.llm.reply = lambda _: Reply(SAID)
            base, server = await stack.enter_async_context(listening(made.app))
            http = await stack.enter_async_context(httpx.AsyncClient(base_url=base))
            return Running(made.app, http, made.llm, server)

        yield started
