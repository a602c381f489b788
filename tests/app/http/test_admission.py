"""More questions than can be answered, and answers that take too long."""

import asyncio
from contextlib import asynccontextmanager

import orjson
import pytest
from starlette.requests import ClientDisconnect

from app.core.errors import AnswerTimeout
from app.core.gate import Gate
from app.core.turn import Failure, Text
from app.http.limits import ANSWER_PATHS, AnswerLimits, cancel_on_disconnect
from app.http.sse import EventQueue
from tests.app.routes.scripted import CHAT, JSON, chat, client_of, scripted
from tests.virtual_time import in_virtual_time

ASKED = chat("Why?")


async def never():
    await asyncio.Event().wait()


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def full_service(headers=None, **settings):
    """A service whose only two answers are under way, and they don't end."""
    app = scripted(60.0, max_answers=2, **settings)
    async with client_of(app, headers=JSON | (headers or {})) as client:
        asked = [asyncio.create_task(client.post(CHAT, json=ASKED)) for _ in range(2)]
        async with asyncio.timeout(60):
            while (await client.post("/v1/search", content=b"no JSON")).status_code != 503:
                await asyncio.sleep(0.01)
        yield app, client
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        assert (await client.post("/v1/search", content=b"no JSON")).status_code == 400


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/search"), *(("POST", path) for path in sorted(ANSWER_PATHS))]
)
async def test_a_question_too_many_is_refused_with_its_body_unread(method, path):
    async with full_service() as (app, _):
        sent = []

        async def unread():
            pytest.fail("the body was read")

        async def send(message):
            sent.append(message)

        await app({"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}, unread, send)
    start, body = sent
    headers = dict(start["headers"])
    assert start["status"] == 503
    assert 1 <= int(headers[b"retry-after"]) <= 5
    assert b"x-request-id" in headers
    error = orjson.loads(body["body"])["error"]
    assert (error["code"], error["type"]) == ("overloaded", "server_error")


async def test_a_full_service_checks_the_key_first_so_that_strangers_take_no_place_and_push_nobody_out(caplog):
    """A refusal shortens the queue: without a valid key there is none, but a 401, and a 429 after ten wrong keys."""
    keys = {"api_keys": "reader-key-of-tests", "admin_keys": "admin-key-of-tests"}
    async with full_service(headers={"authorization": "Bearer reader-key-of-tests"}, **keys) as (_, client):

        async def ask(path, **headers):
            response = await client.post(path, content=b"unread", headers={"authorization": "", **headers})
            return response.status_code

        for key in ("reader-key-of-tests", "admin-key-of-tests"):
            assert await ask("/v1/search", authorization=f"Bearer {key}") == 503
        caplog.clear()
        for path in sorted(ANSWER_PATHS):
            assert await ask(path) == 401
        wrong = [await ask("/v1/search", authorization=f"Bearer wrong{n}") for n in range(30)]
        assert set(wrong[:6]) == {401}
        assert set(wrong[10:]) == {429}
        assert not [record for record in caplog.records if record.name == "app.gate"]


async def test_what_is_no_question_never_waits_and_the_log_is_not_flooded(caplog):
    async with full_service() as (_, client):
        for _ in range(30):
            assert (await client.post(CHAT, json=ASKED)).status_code == 503
        for path in ("/health", "/v1/models", "/docs/en/start", "/openapi.json"):
            assert (await client.get(path, follow_redirects=True)).status_code == 200
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.name for record in warnings] == ["app.gate"]
    assert "requests are refused: 2 answers are in progress" in warnings[0].getMessage()


async def take_all(events, limits):
    async with EventQueue(events, never, limits=limits) as inbox:
        taken = []
        while not (taken and isinstance(taken[-1], Failure)):
            taken += await inbox.take()
        return taken


@in_virtual_time
async def test_an_answer_must_begin_in_time_and_end_in_time():
    async def silent():
        await never()
        yield Text("a")

    async def endless():
        while True:
            yield Text("a")
            await asyncio.sleep(0.01)

    (failure,) = await take_all(silent(), AnswerLimits(first_text=0.02))
    assert isinstance(failure.error, AnswerTimeout)
    *texts, failure = await take_all(endless(), AnswerLimits(first_text=0.02, whole=0.2))
    assert len(texts) > 2
    assert isinstance(failure.error, AnswerTimeout)


async def test_a_client_that_hangs_up_while_it_waits_leaves_the_queue_and_nothing_is_searched():
    gate, began = Gate(10, at_once=1), []
    limits, gone = AnswerLimits(gate), asyncio.Event()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    async def answer():
        began.append("answer")
        yield Text("a")

    async def search():
        async with limits.answer():
            began.append("search")

    async def hangs_up_in_an_answer():
        async with EventQueue(answer(), receive, limits=limits) as inbox:
            await inbox.take()

    async with gate.place():
        for waiting in (hangs_up_in_an_answer, lambda: cancel_on_disconnect(receive, search())):
            gone.clear()
            task = asyncio.create_task(waiting())
            await settled()
            assert not began
            gone.set()
            with pytest.raises(ClientDisconnect):
                await task
    assert not began
    assert (gate.open, gate.working) == (0, 0)
