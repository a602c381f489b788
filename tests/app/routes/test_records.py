"""What logs say of an answer: over the real routes, with a real index and a scripted model server."""

import json
import logging

import pytest

from app.core.log_message import LogMessage
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, JSON, chat, client_of, until
from tests.fake_llm import Reply

QUESTION = "How do I create a persistent volume?"
REFUSAL = "The documentation does not say how to do that."


def lines(caplog, name="request"):
    """The fields of the log lines with this name; they are forgotten afterwards."""
    said = [r.msg for r in caplog.records if isinstance(r.msg, LogMessage) and r.msg.text == name]
    caplog.clear()
    return [one.fields for one in said]


async def ask(app, question, path="chat/completions", headers=JSON, **more):
    body = {"model": "docs-assistant", "input": question} if path == "responses" else chat(question)
    async with client_of(app, headers=JSON | headers) as client:
        return await client.post(f"/v1/{path}", json=body | more)


async def leave(app, when):
    """Ask, and hang up when this is so."""
    body = json.dumps(chat(QUESTION)).encode()
    messages = [{"type": "http.request", "body": body}]

    async def receive():
        if messages:
            return messages.pop()
        await until(when)
        return {"type": "http.disconnect"}

    async def send(message):
        raise AssertionError(message)

    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "path": CHAT, "query_string": b"", "headers": headers}
    await app(scope, receive, send)


@pytest.mark.plugins
async def test_the_line_of_a_request_says_what_became_of_the_question(tmp_path, caplog):
    caplog.set_level(logging.INFO, "app.http")
    cases = (
        (QUESTION, Reply("Use a PersistentVolumeClaim [1]."), "written"),
        (QUESTION, Reply(REFUSAL), "refused"),
        (QUESTION, Reply(status=503), "extractive"),
        (
            QUESTION,
            Reply(" ".join(f"Use claim {i} of the class nfs-csi." for i in range(30)), dies_after=150),
            "failed",
        ),
        ("Where do penguins breed in winter?", Reply(), "refused"),
        ("Hello!", Reply(), "smalltalk"),
    )
    async with indexed(tmp_path) as service:
        for path, streams in (("chat/completions", (False, True)), ("responses", (True,))):
            for stream in streams:
                for question, reply, usual in cases:
                    service.llm.reply = lambda _, reply=reply: reply
                    await ask(service.app, question, path, stream=stream)
                    unseen = usual == "failed" and not stream  # nobody saw the beginning
                    outcome = "extractive" if unseen else usual
                    (line,) = lines(caplog)
                    found = (line["assistant"], line["language"], line["outcome"], line["stream"])
                    assert found == ("docs-assistant", "en", outcome, stream), (question, line)
                    assert (line["extractive"], line["refused"]) == (outcome == "extractive", outcome == "refused")
                    assert line["generation"] == 1
                    assert question not in str(line)
                    if outcome == "written":
                        tokens = (line["prompt_tokens"], line["completion_tokens"])
                        assert (tokens, line["sources"]) == ((11, 4), 1)  # no helper calls: the first search is sure
                        assert 0 < line["first_text_ms"] <= line["ms"]
                        assert line["evidence"] == 1.0
                    if outcome == "failed":
                        assert (line["error"], line["step"]) == ("ModelUnavailable", "synthesize")


async def test_the_line_says_that_the_client_left_or_that_the_request_was_invalid(tmp_path, caplog):
    caplog.set_level(logging.INFO, "app.http")
    async with indexed(tmp_path) as service:
        service.llm.reply = lambda body: Reply("word " * 5000, piece_delay=0.05 if body.get("stream") else 0)
        for when in (lambda: service.llm.open, lambda: service.llm.sent > 5):
            service.llm.sent = 0
            await leave(service.app, when)
            (line,) = lines(caplog)
            assert (line["status"], line["outcome"]) == (499, "cancelled")
        await ask(service.app, "x" * 30_000)
        (line,) = lines(caplog)
        assert "outcome" not in line
        assert line["code"] == "too_long"


async def test_every_response_has_the_request_id_and_servers_of_models_get_it(tmp_path):
    """Unique for each call, because model servers fail at an id that is in use."""
    key, id_ = "reader-key-1234567890", "gateway-7:2"
    given = {"x-request-id": id_, "authorization": f"Bearer {key}"}
    async with indexed(tmp_path, api_keys=key) as service:
        service.llm.request_ids.clear()
        for stream in (False, True):
            response = await ask(service.app, QUESTION, stream=stream, headers=given)
            assert (response.status_code, response.headers.get_list("x-request-id")) == (200, [id_])
        ids = service.llm.request_ids
        assert len(set(ids)) == len(ids) > 2
        assert all(one.startswith(f"{id_}-") for one in ids)

        refused = [
            (404, {"model": "none"}, given),
            (401, {}, given | {"authorization": "Bearer wrong"}),
            (421, {}, given | {"host": "elsewhere.example.org"}),
            (403, {}, given | {"origin": "https://elsewhere.example.org"}),
            (415, {}, given | {"content-type": "text/plain"}),
        ]
        for status, body, headers in refused:
            response = await ask(service.app, QUESTION, headers=headers, **body)
            assert (response.status_code, response.headers.get_list("x-request-id")) == (status, [id_])
        service.app.state.stopping = True
        response = await ask(service.app, QUESTION, headers=given)
        assert (response.status_code, response.headers.get_list("x-request-id")) == (503, [id_])
        response = await ask(service.app, QUESTION, headers=given | {"x-request-id": "a b"})
        assert response.headers["x-request-id"] != "a b"
