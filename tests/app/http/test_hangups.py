"""Clients that leave at any moment, over sockets, on a service with a real index: nothing of theirs stays."""

import asyncio
import random
import socket
from collections import Counter
from contextlib import asynccontextmanager

import orjson
import pytest
import uvicorn

from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, until
from tests.fake_llm import Reply

pytestmark = pytest.mark.server
CLIENTS = 100
PATHS = (CHAT, "/v1/responses")
LONG = " ".join(f"word{n}" for n in range(400))
QUESTION = "How do I create a persistent volume?"


@asynccontextmanager
async def serving(app):
    """The application on a socket in this event loop: (port, its open connections)."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield listener.getsockname()[1], server.server_state.connections
        server.should_exit = True
        await task


async def leave(port, *, path, stream, after):
    """Ask, and close the connection after so many seconds, wherever the answer is by then; after its first text for 0."""
    question = {"model": "docs-assistant", "input": QUESTION} if "responses" in path else chat(QUESTION)
    body = orjson.dumps({"stream": stream, **question})
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        % (path.encode(), len(body))
        + body
    )
    await (asyncio.sleep(after) if after else reader.readuntil(b"word1"))
    writer.transport.abort()


def tasks():
    """What runs, by name; without the model server's, which has one for each connection that is kept open."""
    names = (task.get_coro().__qualname__ for task in asyncio.all_tasks())
    return Counter(name for name in names if not name.startswith("RequestHandler"))


@pytest.mark.slow
async def test_clients_that_hang_up_leave_nothing(tmp_path):
    """Before the search, in it, before the first text and in the middle of the answer; streams and whole answers."""
    chance = random.Random(7)
    async with indexed(tmp_path) as service, serving(service.app) as (port, connections):
        service.llm.reply = lambda body: Reply(LONG, piece_delay=0.05) if body.get("stream") else Reply(delay=0.1)
        for path in PATHS:
            await leave(port, path=path, stream=True, after=0)
        await until(lambda: not service.llm.open and not connections)
        before = tasks()
        clients = [
            {"path": chance.choice(PATHS), "stream": chance.random() < 0.8, "after": chance.random() * 3}
            for _ in range(CLIENTS)
        ]
        await asyncio.gather(*(leave(port, **client) for client in clients))
        await until(lambda: not service.llm.open and not connections)
        await until(lambda: tasks() <= before)
        assert service.llm.cancelled >= len(PATHS)
