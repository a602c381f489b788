"""Far more questions at once than can be answered: some are answered whole, the rest are refused, and nothing else happens."""

import asyncio
import time

import orjson

from tests.end_to_end.program import Program

CLIENTS = 700
BODY = orjson.dumps({"model": "docs-assistant", "messages": [{"role": "user", "content": "What is a generation?"}]})


async def ask(port: int, request: bytes) -> tuple[bytes, bytes]:
    """Head and body of what comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    return head.lower(), body


async def test_a_flood_of_questions_is_answered_in_part_and_leaves_the_service_well(newcomer: Program) -> None:
    """The clients, `/health` all the while, and one who asks afterwards."""
    port = int(newcomer.url.rpartition(":")[2])
    head = b"%s %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    question, health = head % (b"POST", b"/v1/chat/completions", len(BODY)) + BODY, head % (b"GET", b"/health", 0)
    slowest = 0.0

    async def watch() -> None:
        nonlocal slowest
        while True:
            began = time.monotonic()
            status, _ = await ask(port, health)
            assert status.startswith(b"http/1.1 200")
            slowest = max(slowest, time.monotonic() - began)
            await asyncio.sleep(0.1)

    async with asyncio.timeout(300), asyncio.TaskGroup() as clients:
        watching = clients.create_task(watch())
        flood = [clients.create_task(ask(port, question)) for _ in range(CLIENTS)]
        await asyncio.wait(flood)
        answered = [body for head, body in map(asyncio.Task.result, flood) if head.startswith(b"http/1.1 200")]
        refused = [(head, body) for head, body in map(asyncio.Task.result, flood) if head.startswith(b"http/1.1 503")]
        after, _ = await ask(port, question)
        watching.cancel()
    other = [task.result() for task in flood if task.result()[0][9:12] not in {b"200", b"503"}]
    assert not other
    assert len(answered) >= 12
    assert len(refused) >= 100
    assert all(orjson.loads(body)["choices"][0]["finish_reason"] == "stop" for body in answered)
    assert all(b"retry-after: " in head and b'"overloaded"' in body for head, body in refused)
    assert after.startswith(b"http/1.1 200")
    assert slowest < 15  # it hung for 23 s when all were let in
