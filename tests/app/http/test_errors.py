"""HTTP errors: every error has its own status, and responses reveal no internals."""

import asyncio
import inspect
import json
import logging

import pytest
from fastapi import FastAPI
from starlette.types import Message

from app.core import errors
from app.core.errors import AssistantError, ModelRateLimited
from app.http.door import Door
from app.http.errors import api_error
from tests.app.routes.scripted import CHAT, chat, client_of, refused, scripted

STATUS = {
    "AssistantError": 500,
    "SettingsError": 500,
    "PromptError": 500,
    "RequestError": 400,
    "LimitReached": 429,
    "LimitsUnavailable": 500,  # never seen by clients
    "Overloaded": 503,
    "AnswerTimeout": 504,
    "StoreError": 502,
    "StoreUnavailable": 503,
    "StoreBusy": 502,
    "NoIndex": 503,
    "StillReading": 503,
    "IndexDamaged": 502,
    "IndexMismatch": 500,
    "ModelError": 502,
    "ModelUnavailable": 502,
    "ModelRateLimited": 429,
    "ModelTimeout": 504,
    "CrawlError": 500,
    "SitemapError": 500,
    "SourceUnavailable": 500,
    "NotPublished": 500,
    "RunRefused": 500,
    "ReaderError": 500,
    "StepError": 500,
    "WorkersUnavailable": 500,
    "QuestionSetError": 500,
    "ProviderError": 502,
    "DatabaseError": 503,
    "DatabaseTooNew": 503,
    "DatabaseUnavailable": 503,
}
CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, AssistantError)]


def test_every_error_of_ours_has_its_status():
    for kind in CLASSES:
        answer = api_error(kind("secret detail"), "r1")
        assert answer.status == STATUS[kind.__name__], kind
        if answer.status >= 429 and kind.__name__ not in {"LimitReached", "StillReading"}:
            assert "secret" not in answer.error["message"]
            assert "(request r1)" in answer.error["message"]
            assert answer.error["code"]
        else:
            assert answer.error["message"] == "secret detail"


def test_while_the_first_run_reads_clients_are_told_so_and_when_to_ask_again():
    answer = api_error(errors.StillReading("12 of 40 pages"), "r1")
    assert (answer.status, answer.error["code"], answer.error["message"]) == (503, "still_reading", "12 of 40 pages")
    assert int(answer.headers["retry-after"]) > 0


def test_a_rate_limit_says_when_to_come_back_if_that_is_known():
    for seconds, header in ((0.2, "1"), (7, "7"), (7.1, "8")):
        answer = api_error(ModelRateLimited("x", retry_after=seconds), "r1")
        assert answer.headers["retry-after"] == header
        assert f"Try again in {header} s." in answer.error["message"]
    assert "retry-after" not in api_error(ModelRateLimited("x"), "r1").headers


@pytest.mark.parametrize("stream", [False, True])
async def test_an_unexpected_error_is_a_500_with_its_traceback_in_the_log(caplog, stream):
    with caplog.at_level(logging.ERROR):
        async with client_of(scripted(ZeroDivisionError("password=hunter2"))) as client:
            response = await client.post(CHAT, json=chat(stream=stream))
    assert refused(response) == (500, "internal_error")
    assert "hunter2" not in response.text
    assert response.headers["x-request-id"] in response.json()["error"]["message"]
    (record,) = caplog.records
    assert response.headers["x-request-id"] in record.getMessage()
    assert record.exc_info[0] is ZeroDivisionError


async def test_a_wrong_address_or_method_is_an_openai_error():
    async with client_of(scripted()) as client:
        for method, path, status in (
            ("GET", CHAT, 405),
            ("DELETE", "/v1/models", 405),
            ("POST", "/docs/", 405),
            ("GET", "/v1/embeddings", 404),
            ("GET", "/nowhere", 404),
        ):
            response = await client.request(method, path)
            assert response.status_code == status, path
            assert set(response.json()["error"]) == {"message", "type", "param", "code"}
            assert ("allow" in response.headers) == (status == 405)


async def test_a_request_that_outlasts_the_shutdown_says_when_to_come_again():
    """The server cancels what is left after the drain timeout, such as a report of gaps; the client gets no bare 500."""
    app, sent = FastAPI(), list[Message]()

    async def endless(*_: object) -> None:
        raise asyncio.CancelledError

    async def send(message: Message) -> None:
        sent.append(message)

    async def nothing(_: object) -> None:
        return None

    scope = {"type": "http", "app": app, "method": "GET", "path": "/v1/admin/gaps", "headers": []}
    layer = Door(endless, (), nothing, lambda *_: None, lambda _: None)
    with pytest.raises(asyncio.CancelledError):
        await layer(scope, receive=None, send=send)
    app.state.stopping = True
    await layer(scope, receive=None, send=send)
    start, body = sent
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (503, b"5")
    assert "stopping" in json.loads(body["body"])["error"]["message"]
