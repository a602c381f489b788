"""What a server refuses of a request is asked again in another form, learnt once, and told: with the words of real servers."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import ModelError, ModelUnavailable
from app.core.turn import Message, Text
from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.models.protocols import CallOptions
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fake_llm import FakeLLM, Reply

Body = Mapping[str, Any]
OPTIONS = CallOptions(temperature=0.1, max_tokens=1500, stop=("User:",), seed=7)
ASKED = [Message("system", "Be brief."), Message("user", "How much memory?")]
TALK = [
    Message("system", "Be brief."),
    Message("assistant", "Hello."),
    Message("user", "And disk?"),
    Message("user", "How much memory?"),
]


def openai(message: str, param: str | None = None, code: str | None = None) -> str:
    """An error as OpenAI sends it, and those who copy it."""
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})


def forbidden(*fields: str) -> str:
    """The error of pydantic about fields that it doesn't know, which repeats the request."""
    rows = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": "stop"}
        for name in fields
    ]
    return json.dumps({"detail": rows})


def has(*fields: str) -> Callable[[Body], bool]:
    return lambda body: any(name in body for name in fields)


def roles(body: Body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def by_turns(body: Body) -> bool:
    after = roles(body)[roles(body)[0] == "system" :]
    return after == ["user", "assistant"] * (len(after) // 2) + ["user"] * (len(after) % 2)


def has_system(body: Body) -> bool:
    return "system" in roles(body)


USE = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
ONE = "Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported."
SERDE = "Failed to deserialize the JSON body: unknown field `stream_options`, expected one of `model`, `messages`, `temperature`"
NIM = json.dumps({"title": "Unprocessable Entity", "detail": "body -> seed\n  Extra inputs are not permitted"})
LIST = "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]"
WRAPPED = json.dumps({"error": {"cause": openai(ONE, "temperature"), "code": 400, "message": "模型服务调用失败"}})
TURNS = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
REFUSALS: Mapping[str, tuple[int, Callable[[Body], bool], str, set[str]]] = {
    "gpt-5": (400, has("max_tokens"), openai(USE, "max_tokens", "unsupported_parameter"), {"max_tokens"}),
    "o-series through a gateway": (400, has("max_tokens"), f"litellm.BadRequestError: {USE}", {"max_tokens"}),
    "no length at all": (
        422,
        has("max_tokens", "max_completion_tokens"),
        forbidden("max_tokens", "max_completion_tokens"),
        {"max_tokens", "max_completion_tokens"},
    ),
    "a smaller length": (
        400,
        lambda body: body.get("max_tokens", 0) > 512,
        openai("max_tokens is too large: 1500. This model supports at most 512 completion tokens.", "max_tokens"),
        {"max_tokens above 512"},
    ),
    "a range of lengths": (
        400,
        lambda body: body.get("max_tokens", 0) > 1024,
        openai("Invalid max_tokens value, the valid range of max_tokens is [1, 1024]"),
        {"max_tokens above 1024"},
    ),
    "a number that is no length": (
        400,
        has("max_tokens"),
        openai("model-1024 doesn't know max_tokens"),
        {"max_tokens"},
    ),
    "gpt-5's temperature": (
        400,
        has("temperature"),
        openai(ONE, "temperature", "unsupported_value"),
        {"temperature"},
    ),
    "Kimi": (400, has("temperature"), openai("invalid temperature: only 1 is allowed for this model"), {"temperature"}),
    "an error in an error": (400, has("temperature"), WRAPPED, {"temperature"}),
    "o3": (400, has("stop"), openai("Unsupported parameter: 'stop' is not supported with this model."), {"stop"}),
    "Groq": (400, has("seed"), openai("property 'seed' is unsupported"), {"seed"}),
    "NIM": (422, has("seed"), NIM, {"seed"}),
    "Azure": (
        400,
        has("stream_options"),
        openai("Unrecognized request argument supplied: stream_options"),
        {"stream_options"},
    ),
    "vLLM": (400, has("stream_options"), json.dumps({"object": "error", "message": LIST}), {"stream_options"}),
    "a server in Rust": (422, has("stream_options"), SERDE, {"stream_options"}),
    "a server in Go": (400, has("stream_options"), 'json: unknown field "streamOptions"', {"stream_options"}),
    "no extras": (
        422,
        has("stream_options", "seed", "stop"),
        forbidden("seed", "stop", "stream_options"),
        {"stream_options", "seed", "stop"},
    ),
    "no streams": (
        400,
        lambda body: bool(body.get("stream")),
        openai("Your organization must be verified to stream this model.", "stream", "unsupported_value"),
        {"stream"},
    ),
    "Gemma": (
        400,
        has_system,
        json.dumps({"object": "error", "message": "System role not supported"}),
        {"system role"},
    ),
    "o1-mini": (
        400,
        has_system,
        openai("Unsupported value: 'messages[0].role' does not support 'system'.", "messages[0].role"),
        {"system role"},
    ),
    "Google": (
        400,
        has_system,
        '[{"error": {"message": "Developer instruction is not enabled for this model"}}]',
        {"system role"},
    ),
    "serde": (
        422,
        has_system,
        "messages[0].role: unknown variant `system`, expected `user` or `assistant`",
        {"system role"},
    ),
    "a router": (
        400,
        has("temperature"),
        json.dumps({"error": {"message": "Provider returned error", "metadata": {"raw": openai(ONE, "temperature")}}}),
        {"temperature"},
    ),
    "a router of Gemma": (
        400,
        has_system,
        json.dumps({"error": {"message": "Provider returned error", "metadata": {"raw": "System role not supported"}}}),
        {"system role"},
    ),
    "llama.cpp": (500, has_system, openai("Jinja Exception: System role not supported"), {"system role"}),
}  # fmt: skip
ORDERS: Mapping[str, tuple[int, Callable[[Body], bool], str, set[str]]] = {
    "Mistral": (400, lambda body: not by_turns(body), openai(TURNS), {"order of roles"}),
    "Anthropic": (
        400,
        lambda body: not by_turns(body),
        openai('messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row'),
        {"order of roles"},
    ),
    "DeepSeek": (
        400,
        lambda body: not by_turns(body),
        openai("The model does not support successive user or assistant messages (messages[1] and messages[2])"),
        {"order of roles"},
    ),
    "old Mistral": (
        400,
        lambda body: has_system(body) or not by_turns(body),
        openai("Conversation roles must alternate user/assistant/user/assistant/..."),
        {"order of roles", "system role"},
    ),
}  # fmt: skip


def refusing(llm: FakeLLM, status: int, refuses: Callable[[Body], bool], error: str) -> None:
    llm.reply = lambda body: Reply("", status=status, raw=error) if refuses(body) else Reply("Take 8 GB.")


async def answers(model: Model, messages: Sequence[Message], options: CallOptions = OPTIONS) -> list[str]:
    """A streamed answer and a whole one."""
    streamed = [event.text async for event in model.stream(messages, options) if isinstance(event, Text)]
    return ["".join(streamed).strip(), (await model.complete(messages, options)).text.strip()]


@pytest.mark.parametrize("kind", [*REFUSALS, *ORDERS])
async def test_a_refused_request_is_answered_in_another_form_which_is_learnt_once(
    llm: FakeLLM, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The reader gets the answer; the next one costs one call."""
    status, refuses, error, refused = (REFUSALS | ORDERS)[kind]
    refusing(llm, status, refuses, error)
    messages = TALK if kind in ORDERS else ASKED
    async with aclosing(OpenAIModel(Endpoint(llm.url, timeout=60), "m")) as opened:
        assert await answers(Model(opened), messages) == ["Take 8 GB."] * 2
        assert set(Model(opened).refused) == refused
        assert set(llm.calls[-1]) >= {"model", "messages"}
        known = len(llm.calls)
        assert await answers(Model(opened), messages) == ["Take 8 GB."] * 2
        assert len(llm.calls) == known + 2
    told = [line for line in caplog.messages if "refuses a part" in line]
    assert len(told) == len(refused), "each is said once"
    assert all("model=m" in line for line in told)


@pytest.mark.parametrize(
    "error",
    [
        'Error rendering prompt with jinja template: "Only user and assistant roles are supported!"',
        "Error rendering prompt with jinja template: System role not supported",
        "Conversation roles must alternate user/assistant/user/assistant/...",
    ],
)
async def test_a_refusal_as_the_first_event_of_a_stream_is_one_too(llm: FakeLLM, error: str) -> None:
    """LM Studio begins to answer before it fills its template. An error after the first word stays an error."""
    event = f"event: error\ndata: {json.dumps({'error': {'message': error}})}\n\n"
    llm.reply = lambda body: Reply("", raw=event, finish=None) if has_system(body) else Reply("Take 8 GB.")
    async with aclosing(OpenAIModel(Endpoint(llm.url, timeout=60), "m")) as opened:
        for calls in (2, 3):
            events = [one.text async for one in Model(opened).stream(ASKED, OPTIONS) if isinstance(one, Text)]
            assert "".join(events).strip() == "Take 8 GB."
            assert len(llm.calls) == calls
        assert set(opened.refused) == {"system role"}
        llm.reply = lambda _: Reply("Take", raw=event.replace("System", "Other"), finish=None)
        with pytest.raises(ModelUnavailable, match="in mid-answer"):
            [one async for one in Model(opened).stream(TALK, OPTIONS)]
        assert len(llm.calls) == 4


async def test_no_word_of_the_conversation_is_lost(llm: FakeLLM) -> None:
    """Joined and moved messages keep their order; what isn't refused stays as it was."""
    refusing(llm, *ORDERS["old Mistral"][:3])
    async with aclosing(OpenAIModel(Endpoint(llm.url, timeout=60), "m")) as opened:
        await answers(Model(opened), TALK)
        assert llm.calls[-1]["messages"] == [
            {"role": "user", "content": "Be brief.\n\n…"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "And disk?\n\nHow much memory?"},
        ]
        await answers(Model(opened), ASKED)
        assert llm.calls[-1]["messages"] == [{"role": "user", "content": "Be brief.\n\nHow much memory?"}]
        sent = {name: llm.calls[-1][name] for name in ("temperature", "max_tokens", "stop", "seed")}
        assert sent == {"temperature": 0.1, "max_tokens": 1500, "stop": ["User:"], "seed": 7}


async def test_a_length_goes_on_under_its_other_name(llm: FakeLLM) -> None:
    """The limit of an answer still holds."""
    refusing(llm, *REFUSALS["gpt-5"][:3])
    async with aclosing(OpenAIModel(Endpoint(llm.url, timeout=60), "m")) as opened:
        await answers(Model(opened), ASKED)
    assert llm.calls[-1]["max_completion_tokens"] == 1500
    assert llm.calls[-1]["temperature"] == 0.1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai("The model `m` does not exist", "model", "model_not_found")),
        (400, openai("This model's maximum context length is 1024 tokens, 'max_tokens' of 1500 is too much.")),
        (400, "bad request"),
        (422, json.dumps({"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}]})),
        (403, openai("temperature isn't for you", "temperature")),
        (500, openai("worker exited, temperature of the GPU is too high, stop")),
        (400, "[" * 60_000),
    ],
)
async def test_other_refusals_are_errors_after_one_call(llm: FakeLLM, status: int, error: str) -> None:
    """Nothing is learnt from what names no part of a request that has another form, or what the operator wrote."""
    refusing(llm, status, lambda _: True, error)
    async with aclosing(OpenAIModel(Endpoint(llm.url, timeout=60), "m", {"top_k": 3})) as opened:
        with pytest.raises(ModelUnavailable if status == 500 else ModelError, match=str(status)):
            await Model(opened).complete(ASKED, OPTIONS)
        assert (len(llm.calls), Model(opened).refused) == (1, {})


async def test_what_never_helps_is_not_learnt(llm: FakeLLM) -> None:
    """A server that refuses each form gets an end, and the next request as it was."""
    refusing(llm, 400, lambda _: True, openai("temperature, stop, seed and roles are wrong"))
    async with aclosing(OpenAIModel(Endpoint(llm.url, timeout=60), "m", {"temperature": 0.5})) as opened:
        with pytest.raises(ModelError, match="are wrong"):
            await Model(opened).complete(TALK, OPTIONS)
        assert len(llm.calls) < 8
        assert {call["temperature"] for call in llm.calls} == {0.5}, "what the operator wrote is sent"
        refusing(llm, 400, lambda _: False, "")
        await Model(opened).complete(TALK, OPTIONS)
        assert roles(llm.calls[-1]) == ["system", "assistant", "user", "user"]
        assert Model(opened).refused == {}


async def test_questions_at_the_same_time_learn_the_same(llm: FakeLLM, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    status, refuses, error, refused = REFUSALS["no extras"]
    refusing(llm, status, refuses, error)
    async with aclosing(OpenAIModel(Endpoint(llm.url, timeout=60), "m")) as opened:
        found = await asyncio.gather(*(answers(Model(opened), ASKED) for _ in range(5)))
        assert found == [["Take 8 GB."] * 2] * 5
        assert set(opened.refused) == refused
    assert len([line for line in caplog.messages if "refuses a part" in line]) == len(refused)


@pytest.mark.parametrize("kind", ["gpt-5", "Gemma", "no extras"])
async def test_readers_get_the_model_s_answer_and_health_tells_the_refusal(kind: str, tmp_path: Path) -> None:
    """Not a quotation, from the first question on."""
    status, refuses, error, _ = REFUSALS[kind]
    async with indexed(tmp_path) as service, client_of(service.app) as client:
        answer = Reply("Each notebook gets at most 4 GB of memory [1].")
        service.llm.reply = lambda body: Reply("", status=status, raw=error) if refuses(body) else answer
        for stream in (True, False):
            response = await client.post(CHAT, json=chat("How much memory has a notebook?", stream=stream, seed=1))
            assert "Each notebook gets at most 4 GB" in response.text
            assert '"extractive":true' not in response.text.replace(": ", ":")
        refused = (await client.get("/health")).json()["details"]["refused"]["m"]
        assert refused, "the model's name leads to what is done"
        assert all(isinstance(instead, str) for instead in refused.values())
