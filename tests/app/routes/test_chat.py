"""POST /v1/chat/completions in this process: what is taken, what is refused, what comes back."""

import gzip
import json
import logging
from pathlib import Path

import orjson
import pytest

from app.core.errors import ModelUnavailable
from app.core.settings import Settings
from app.core.trace import Trace, TraceEnd
from app.core.turn import Done, Failure, Message, Reasoning, Sampling, Source, Status, Text, Usage, Verbatim
from app.http.bodies import MAX_BODY
from app.routes.request_models import MAX_QUESTION
from app.routes.server import create_app
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, HELLO, Scripted, ScriptedAssistants, chat, client_of

SOURCE = Source(1, "Volumes", "https://docs.test/volumes", "Create", "en", "snippet", 0.9)


def ask(*messages, **fields):
    """A request body; a plain string is a user's message."""
    lines = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages or ("How?",)]
    return {"model": "docs-assistant", "messages": lines, **fields}


async def post(script=HELLO, body=None, *, headers=None, settings=None, content=None, **options):
    assistant = Scripted(script=script)
    app = create_app(ScriptedAssistants((assistant,)), settings or Settings.load(None), **options)
    async with client_of(app) as client:
        data = {"content": content} if content is not None else {"json": body or ask()}
        return assistant, await client.post(CHAT, headers=headers, **data)


def events(response):
    """The JSON of each data line, [DONE] as it is, comments left out."""
    lines = [line[6:] for line in response.text.split("\n\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else orjson.loads(line) for line in lines]


def last_of(response, stream):
    """The whole answer, or the last chunk of the stream."""
    return events(response)[-2] if stream else response.json()


def error(response):
    """The error object, after a look at its shape."""
    body = response.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return body["error"]


STREAMS = pytest.mark.parametrize("stream", [False, True])


async def test_a_whole_answer_has_text_usage_and_reason():
    _, response = await post(body=ask(stream=False))
    body = response.json()
    assert response.status_code == 200
    assert body.pop("id") == "chatcmpl-" + response.headers["x-request-id"]
    assert isinstance(body.pop("created"), int)
    assert body == {
        "object": "chat.completion",
        "model": "docs-assistant",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Ahoj č"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
        "sources": [],
    }


@STREAMS
async def test_sources_come_as_a_field_too(stream):
    _, response = await post((Text("a [1]"), SOURCE, Done()), ask(stream=stream))
    assert last_of(response, stream)["sources"] == [
        {
            "number": 1,
            "title": "Volumes",
            "url": "https://docs.test/volumes",
            "section": "Create",
            "language": "en",
            "snippet": "snippet",
            "score": 0.9,
            "translated_from": "",
            "chunk": "",
            "sentence": "",
        }
    ]


@STREAMS
async def test_the_end_says_whether_the_answer_is_extractive_or_was_cut(stream):
    for done, extractive, reason in ((Done(extractive=True), True, "stop"), (Done("length"), None, "length")):
        _, response = await post((Text("a"), done), ask(stream=stream))
        last = last_of(response, stream)
        assert (last.get("extractive"), last["choices"][0]["finish_reason"]) == (extractive, reason)


@STREAMS
async def test_the_end_says_how_much_is_copied_and_not_how_sure_it_is(stream):
    for verbatim, told in ((Verbatim(3, 1), {"statements": 3, "found": 1}), (None, None)):
        _, response = await post((Text("a"), Done(verbatim=verbatim)), ask(stream=stream))
        last = last_of(response, stream)
        assert last.get("verbatim") == told
        assert not {"confidence", "support"} & last.keys()


@STREAMS
async def test_thinking_status_and_sources_are_not_in_the_text(stream):
    script = (Status("Searching"), Reasoning("hmm"), SOURCE, Text("a"), Status("x"), Text("b"), Done())
    _, response = await post(script, ask(stream=stream))
    said = events(response)[:-1] if stream else [response.json()]
    pieces = [one["choices"][0]["delta" if stream else "message"] for one in said]
    assert "".join(piece.get("content", "") for piece in pieces) == "ab"


@STREAMS
async def test_half_a_surrogate_pair_does_not_break_the_answer(stream):
    _, response = await post((Text("a\ud83db"), Done()), ask(stream=stream))
    assert response.status_code == 200
    assert "a?b" in response.text


@STREAMS
async def test_an_answer_is_never_empty_and_an_error_before_the_first_text_is_an_http_status(stream):
    failed = ModelUnavailable("http://10.0.0.1 said 500")
    for code, *script in (
        ("model_error",),
        ("model_error", Done()),
        ("model_error", Status("x"), Usage(1, 0), Done()),
        ("model_unavailable", Status("x"), failed),
        ("model_unavailable", Status("x"), Failure(failed)),
    ):
        _, response = await post(tuple(script), ask(stream=stream))
        assert (response.status_code, error(response)["code"]) == (502, code)
        assert "10.0.0.1" not in response.text


async def test_an_error_after_the_first_text_is_an_error_event():
    failed = ModelUnavailable("http://10.0.0.1 broke off")
    for end in (failed, Failure(failed)):
        _, response = await post((Text("a"), 0.01, end), ask(stream=True))
        assert response.status_code == 200
        _, text, failure, done = events(response)
        assert text["choices"][0]["delta"] == {"content": "a"}
        assert failure["error"]["code"] == "model_unavailable"
        assert done == "[DONE]"
        assert "10.0.0.1" not in response.text


async def test_an_answer_that_breaks_off_says_so():
    _, whole = await post((Text("a"), Failure(ModelUnavailable("x"))), ask())
    assert whole.status_code == 502
    _, stream = await post((Text("a"), 0.01), ask(stream=True))
    assert [e["error"]["code"] for e in events(stream)[:-1] if "error" in e] == ["model_error"]


async def test_a_stream_opens_after_a_delay_and_sends_keep_alives():
    script = (0.25, Text("a"), Done())
    _, response = await post(script, ask(stream=True), open_after=0.05, keep_alive=0.05)
    comments = response.text[: response.text.index("data:")]
    assert comments.count(": keep-alive\n\n") * len(": keep-alive\n\n") == len(comments)
    assert comments.count(": keep-alive") >= 2
    assert events(response)[1]["choices"][0]["delta"] == {"content": "a"}


async def test_thinking_for_long_does_not_silence_the_comments():
    script = (Text("a"), *(x for _ in range(20) for x in (0.01, Reasoning("hmm"), Status("still"))), Text("b"), Done())
    _, response = await post(script, ask(stream=True), keep_alive=0.05)
    assert ": keep-alive" in response.text


async def test_errors_in_an_open_stream_are_events():
    _, response = await post((0.1, ModelUnavailable("x")), ask(stream=True), open_after=0.02)
    assert response.status_code == 200
    failure, end = events(response)
    assert failure["error"]["type"] == "server_error"
    assert end == "[DONE]"


async def test_the_conversation_reaches_the_assistant():
    conversation = (
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "42", "tool_call_id": "1"},
        {"role": "assistant", "content": "Seen."},
        {"role": "user", "content": [{"type": "text", "text": "And "}, {"type": "text", "text": "now?"}]},
    )
    assistant, response = await post(body=ask(*conversation))
    assert response.status_code == 200
    request = assistant.asked[0]
    assert request.messages == (
        Message("system", "Be brief."),
        Message("user", "See\n[image]"),
        Message("assistant", "Seen."),
        Message("user", "And \nnow?"),
    )
    assert request.question == "And \nnow?"
    assert request.assistant == "docs-assistant"
    assert request.id == response.headers["x-request-id"]


async def test_sampling_is_passed_on_and_unknown_fields_are_ignored():
    for fields, sampling in (
        ({}, Sampling()),
        ({"temperature": None, "max_tokens": None, "stop": None, "seed": None, "n": None}, Sampling()),
        ({"temperature": 1, "max_tokens": 5, "stop": "x", "seed": -3, "n": 1}, Sampling(1.0, 5, ("x",), -3)),
        ({"max_tokens": 5, "max_completion_tokens": 6, "stop": ["a", "b"]}, Sampling(None, 6, ("a", "b"), None)),
        ({"max_tokens": -1, "max_completion_tokens": 256.0}, Sampling(None, 256)),
        ({"max_tokens": -1.0}, Sampling()),
        ({"made_up": [1]}, Sampling()),
    ):
        assistant, response = await post(body=ask(**fields))
        assert response.status_code == 200
        assert assistant.asked[0].sampling == sampling


BAD = [
    ({"messages": []}, "messages"),
    ({"messages": "hello"}, "messages"),
    ({"messages": [3]}, "messages[0]"),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
    ({"messages": [{"role": "user", "content": " \n"}]}, "messages[0].content"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
    ({"model": None}, "model"),
    ({"model": 5}, "model"),
    ({"stream": "yes"}, "stream"),
    ({"stream_options": True}, "stream_options"),
    ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"n": 2}, "n"),
    ({"n": "1"}, "n"),
    ({"temperature": True}, "temperature"),
    ({"temperature": 2.1}, "temperature"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 1.5}, "max_tokens"),
    ({"max_tokens": -2}, "max_tokens"),
    ({"stop": 7}, "stop"),
    ({"stop": ["a", 7]}, "stop"),
    ({"stop": list("abcde")}, "stop"),
    ({"seed": 10**30}, "seed"),
]


async def test_a_wrong_field_is_a_400_that_names_it():
    assistant = Scripted()
    async with client_of(create_app(ScriptedAssistants((assistant,)), Settings.load(None))) as client:
        for fields, param in BAD:
            found = error(response := await client.post(CHAT, json={**ask(), **fields}))
            assert (response.status_code, found["type"], found["param"]) == (400, "invalid_request_error", param)
            assert param.split("[")[0] in found["message"]
            assert not assistant.asked


async def test_what_is_no_json_object_is_a_400():
    for content in (b"", b"{", b"\xff\xfe", b'{"a": NaN}', b"[" * 100_000, b'{"model": "\\ud800"}'):
        _, response = await post(content=content)
        assert (response.status_code, error(response)["code"]) == (400, "invalid_json")
    for content in (b"[]", b"3", b"null", b'"x"'):
        _, response = await post(content=content)
        assert response.status_code == 400
        assert error(response)["message"].startswith("The body")


async def test_a_long_question_is_a_413_and_a_long_history_is_none():
    _, response = await post(body=ask("x" * (MAX_QUESTION + 1)))
    assert (response.status_code, error(response)["code"]) == (413, "too_long")
    long = MAX_QUESTION + 500
    earlier = {"role": "assistant", "content": "y" * long}
    _, response = await post(body=ask("x" * long, earlier, "z" * MAX_QUESTION))
    assert response.status_code == 200


async def test_a_large_body_is_a_413_with_and_without_a_declared_length():
    async def pieces():
        for _ in range(100):
            yield b"x" * (MAX_BODY // 99)

    for content in (b"x" * (MAX_BODY + 1), pieces()):
        _, response = await post(content=content)
        assert ("content-length" in response.request.headers) is isinstance(content, bytes)
        assert (response.status_code, error(response)["code"]) == (413, "too_long")


async def test_a_body_may_be_packed_with_gzip_and_no_bomb_is_unpacked():
    body = orjson.dumps(ask())
    halves = gzip.compress(body[:20]) + gzip.compress(body[20:])
    for coding, content in (("gzip", gzip.compress(body)), ("X-GZIP", halves), ("identity", body)):
        assistant, response = await post(content=content, headers={"content-encoding": coding})
        assert (response.status_code, assistant.asked[0].question) == (200, "How?")
    for coding, content, status, code in (
        ("br", b"\x8b\x01", 415, "unknown_encoding"),
        ("gzip", body, 400, None),
        ("gzip", gzip.compress(body)[:-9], 400, None),
        ("gzip", gzip.compress(b" " * (MAX_BODY + 1)), 413, "too_long"),
    ):
        _, response = await post(content=content, headers={"content-encoding": coding})
        assert (response.status_code, error(response)["code"]) == (status, code)


async def test_slashes_of_joined_addresses_are_folded():
    """Also below the prefix of a proxy; a page's address keeps its last slash."""
    app = create_app(ScriptedAssistants((Scripted(),)), Settings.load(None))
    async with client_of(app) as client:
        for path in ("/v1/models/", "//v1/models", "/v1//models", "/v1/models//docs-assistant/"):
            assert (await client.get(f"http://localhost{path}")).status_code == 200, path
        for path in ("/v1//chat/completions", "/v1/chat/completions/", "//v1/chat/completions"):
            assert (await client.post(f"http://localhost{path}", json=ask())).status_code == 200, path
        assert (await client.get("http://localhost/v2//models")).status_code == 404


async def test_a_client_may_name_its_request_unless_the_name_could_spoil_the_log():
    for id_ in ("abc-1.x:y_Z", "a" * 128):
        _, response = await post(headers={"x-request-id": id_})
        assert response.headers["x-request-id"] == id_
    for id_ in ("", "a b", "a" * 129, "x\tstatus=200"):
        _, response = await post(headers={"x-request-id": id_})
        assert response.headers["x-request-id"] != id_
        assert len(response.headers["x-request-id"]) == 24


async def test_the_question_is_logged_at_debug_only(caplog):
    caplog.set_level(logging.INFO, "app.http")
    _, response = await post(body=ask("secret question"))
    line = next(r.getMessage() for r in caplog.records if r.getMessage().startswith("request "))
    assert f"id={response.headers['x-request-id']} " in line
    assert "status=200" in line
    assert "model=docs-assistant stream=False" in line
    assert "secret" not in caplog.text
    caplog.set_level(logging.DEBUG, "app.http")
    await post(body=ask("secret question"))
    assert "secret question" in caplog.text


async def test_what_a_client_sends_makes_up_no_log_fields(caplog):
    caplog.set_level(logging.INFO, "app.http")
    await post(body={**ask(), "model": "x status=200\nrequest id=1"})
    assert [r.getMessage() for r in caplog.records if r.getMessage().startswith("request ")] != []
    assert r"model='x status=200\nrequest id=1'" in caplog.text


TRACE = Trace("How?", "en", 3, 0.1, None, (), (), None, (), None, (), (), (), TraceEnd("stop"))
TRACED = (Text("Ah"), Done(trace=TRACE))
ADMINS = Settings.load(None, admin_keys="admin-key-of-tests", api_keys="reader-key-of-tests")


@STREAMS
async def test_an_admin_key_gets_the_trace(stream):
    """As a field of the whole answer, or of the chunk with the finish_reason."""
    headers = {"authorization": "Bearer admin-key-of-tests"}
    assistant, response = await post(TRACED, ask(stream=stream, trace=True), headers=headers, settings=ADMINS)
    assert assistant.asked[0].trace
    assert assistant.asked[0].whole is not stream
    assert last_of(response, stream)["trace"] == json.loads(orjson.dumps(TRACE))


async def test_without_an_admin_key_there_is_no_trace():
    """A reader's key gets no trace, an admin's key does, and may ask without one; without admin keys there are no traces."""
    reader, admin = ({"authorization": f"Bearer {key}"} for key in ("reader-key-of-tests", "admin-key-of-tests"))
    _, refused = await post(TRACED, ask(trace=True), headers=reader, settings=ADMINS)
    assert (refused.status_code, error(refused)["code"]) == (401, "invalid_api_key")
    _, answered = await post(body=ask(), headers=admin, settings=ADMINS)
    assert answered.status_code == 200
    _, refused = await post(body=ask(trace=True))
    assert (refused.status_code, error(refused)["code"]) == (403, "admin_disabled")
    assistant, _ = await post(body=ask(), headers=reader, settings=ADMINS)
    assert not assistant.asked[0].trace


async def test_a_persona_is_a_name_and_is_passed_on():
    for persona in ("kids", None):
        assistant, response = await post(body=ask(persona=persona))
        assert response.status_code == 200
        assert assistant.asked[0].persona == (persona or "")
    _, response = await post(body=ask(persona=3))
    assert (response.status_code, error(response)["param"]) == (400, "persona")


@pytest.mark.parametrize(("with_model", "mode"), [(True, "machine-generated"), (False, "ai-modified")])
async def test_a_response_tells_programs_that_a_machine_answers(tmp_path: Path, with_model: bool, mode: str):
    """Streamed or whole, with a language model and without; a page of another origin may read it."""
    settings: dict[str, object] = {"with_model": with_model, "origins": ["https://docs.test"], "open": True}
    async with (
        indexed(tmp_path, **settings) as service,
        client_of(service.app, headers={"origin": "https://docs.test"}) as client,
    ):
        for stream in (False, True):
            response = await client.post(CHAT, json=chat("How do I create a volume?", stream=stream))
            assert (response.status_code, response.headers["ai-disclosure"]) == (200, f"mode={mode}")
            assert "AI-Disclosure" in response.headers["access-control-expose-headers"]
        assert "ai-disclosure" not in (await client.post(CHAT, json={})).headers
