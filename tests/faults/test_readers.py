"""A running service while its index is published again and again: no error, and no answer of two generations."""

import asyncio
import re
import time

import httpx

from ingestion.report import EXIT_OK
from tests.end_to_end.program import service
from tests.faults.places import opened
from tests.faults.rig import Rig

CLIENTS = 50
PUBLISHES = 10
PAUSE = 0.3
"""Seconds between a client's questions, so that the machine has time for the runs as well."""
LONGER_THAN_HTTPX = 7.0
"""Seconds: httpx gives up an idle connection after 5, and the service must not be the first to."""


async def _connected(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that was used once and is idle from then on."""
    at = httpx.URL(url)
    connection = await asyncio.open_connection(at.host, at.port)
    assert await _asked(*connection) == b"HTTP/1.1 200 OK"
    return connection


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The status line of /health on this connection."""
    writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    async with asyncio.timeout(120):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head.lower())[1])  # type: ignore[index]
        await reader.readexactly(length)
    return head.split(b"\r\n")[0]


async def test_fifty_clients_ask_while_ten_generations_are_published_and_one_taken_back(rig: Rig):
    """Every answer is of one generation, whole; the service notices each new one by itself."""
    rig.pages = 6
    rig.write_site("state0")
    await rig.run()
    seen: list[frozenset[str]] = []
    wrong: list[str] = []
    stop = asyncio.Event()

    async def client(http: httpx.AsyncClient) -> None:
        body = {"model": "docs-assistant", "messages": [{"role": "user", "content": "What does a gauge measure?"}]}
        while not stop.is_set():
            answer = await http.post("/v1/chat/completions", json=body)
            if answer.status_code == 503 and (told := answer.json()["error"])["code"] == "overloaded":
                await asyncio.sleep(told["retry_after"])  # machines of CI are slow at times: other tests measure that
                continue
            found = frozenset(re.findall(r"state\d+", answer.text))
            seen.append(found)
            if answer.status_code != 200 or len(found) != 1:
                wrong.append(f"{answer.status_code} {answer.text[:2000]}")
            await asyncio.sleep(PAUSE)

    async def noticed(marker: str) -> None:
        async with asyncio.timeout(120):
            while seen[-1:] != [frozenset({marker})]:
                await asyncio.sleep(0.02)

    with service(rig.folder / "service", "serve", **rig.settings) as running:
        began = time.monotonic()
        idle = await _connected(running.url)
        async with (
            httpx.AsyncClient(base_url=running.url, timeout=120, trust_env=False) as http,
            asyncio.TaskGroup() as clients,
        ):
            for _ in range(CLIENTS):
                clients.create_task(client(http))
            try:
                for number in range(1, PUBLISHES + 1):
                    rig.write_site(f"state{number}")
                    assert (await rig.run()).exit_code == EXIT_OK
                    await noticed(f"state{number}")
                store = opened(rig.place)
                await store.rollback()
                await store.close()
                await noticed(f"state{PUBLISHES - 1}")
            finally:
                stop.set()
        await asyncio.sleep(max(0.0, LONGER_THAN_HTTPX - (time.monotonic() - began)))
        assert await _asked(*idle) == b"HTTP/1.1 200 OK"
        idle[1].close()
        await idle[1].wait_closed()
    assert wrong == []
    assert len(seen) > CLIENTS
    assert {marker for found in seen for marker in found} == {f"state{n}" for n in range(PUBLISHES + 1)}
