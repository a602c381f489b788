"""The window of a model: read from the server's list or its error, and what then happens to the next prompt."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from app.core.prompts import load_prompts
from app.core.turn import Done, Text, Turn
from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.models.window import listed_window, window_said
from app.pipeline.steps.synthesize import Synthesize
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
HITS = tuple(hit(n, f"Text {n}. " + "Each notebook has four gigabytes of memory. " * 40) for n in range(1, 9))


@pytest.mark.parametrize(
    ("entries", "window"),
    [
        ([{"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 32768}}], 4096),
        ([{"id": "m", "max_model_len": 8192}, {"id": "other", "max_model_len": 1}], 8192),
        ([{"id": "/models/file.gguf", "meta": {"n_ctx": 4096}}], 4096),
        ([{"id": "a", "context_length": 1}, {"id": "b", "context_length": 2}], 0),
        ([{"id": "m", "meta": None, "max_model_len": "8192"}, "m", None], 0),
        ([], 0),
    ],
)
def test_the_window_is_found_in_the_lists_of_servers(entries: list[Any], window: int) -> None:
    """Of llama.cpp, vLLM and providers; a server with one model has it under any name."""
    assert listed_window(entries, "m") == window


@pytest.mark.parametrize(
    ("error", "window"),
    [
        ("This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.", 4096),
        ('{"message":"the request exceeds the available context size (2048 tokens), try increasing it"}', 2048),
        ('{"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}', 8192),
        ("The model is overloaded.", 0),
    ],
)
def test_the_window_is_found_in_the_errors_of_servers(error: str, window: int) -> None:
    assert window_said(error) == window


def strict(window: int, per_token: float = 3) -> Any:
    """A server that refuses prompts with their answers that don't fit, at so many characters a token."""

    def reply(body: dict[str, Any]) -> Reply:
        asked = sum(len(message["content"]) for message in body["messages"]) / per_token + body["max_tokens"]
        if asked <= window:
            return Reply("Four gigabytes [1].")
        error = {"error": {"code": 400, "message": f"the request exceeds the context size ({window} tokens)"}}
        return Reply(json.dumps(error), status=400)

    return reply


async def written(model: Model, asked: Turn) -> bool:
    """True if the model wrote the answer."""
    step = Synthesize(PROMPTS, SETTINGS, model)
    changes = await step(asked)
    events = [event async for event in changes["events"]]
    assert any(isinstance(event, Text) for event in events)
    return not next(event for event in events if isinstance(event, Done)).extractive


@pytest.mark.parametrize("window", [2048, 4096, 8192])
async def test_a_prompt_fits_the_window_that_the_server_lists(llm: FakeLLM, window: int) -> None:
    """What was set is larger. A small window leaves room for passages, too."""
    llm.models, llm.windows, llm.reply = ["m"], {"m": window}, strict(window)
    model = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "m"))
    try:
        await model.breakers[0].probe.look()  # as a start does
        assert model.window == window
        assert await written(model, turn(hits=HITS))
        assert "Text 1." in llm.calls[-1]["messages"][0]["content"]
    finally:
        await model.close()


CZECH = "Každý sešit má čtyři gigabajty paměti, která se účtuje po hodinách. "


@pytest.mark.parametrize("window", [2048, 4096, 8192])
@pytest.mark.parametrize(("asked", "written_in"), [("cs", "cs"), ("en", "cs"), ("cs", "ja")])
async def test_a_prompt_of_czech_pages_fits_the_window_too(
    llm: FakeLLM, window: int, asked: str, written_in: str
) -> None:
    """A token has 2.1 characters of Czech at the least, which are two thirds of the English ones. The language of the pages counts."""
    llm.models, llm.windows, llm.reply = ["m"], {"m": window}, strict(window, 2.1 if written_in == "cs" else 2.0)
    hits = tuple(hit(n, f"Text {n}. {CZECH * 40}") for n in range(1, 9))
    hits = tuple(replace(one, chunk=replace(one.chunk, language=written_in)) for one in hits)
    question = "Kolik paměti má každý sešit a jak se účtuje?" if asked == "cs" else "How much memory has a notebook?"
    question = f"{question} {question.replace('?', '.') * 6}"
    model = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "m"))
    try:
        await model.breakers[0].probe.look()
        assert await written(model, turn(question, asked, hits=hits))
        sent = sum(len(message["content"]) for message in llm.calls[-1]["messages"])
        assert sent > min(window, 3000), "with as many passages as fit, or as the short prompt has"
    finally:
        await model.close()


OLLAMA = {"id": "m:latest", "object": "model", "created": 1_700_000_000, "owned_by": "library"}
TRAINED = {"model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768}}


@asynccontextmanager
async def ollama(shown: Any, running: Any, **listed: Any) -> AsyncIterator[tuple[Model, list[str]]]:
    """A model of a server that lists its models as Ollama, and answers so beside `/v1`; and the paths that were asked there."""
    asked = list[str]()

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [OLLAMA | listed, OLLAMA | {"id": "other:latest"}]})

    async def beside(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path == "/api/show":
            assert await request.json() == {"model": "m"}
        told = shown if request.path == "/api/show" else running
        return web.json_response(told) if not isinstance(told, int) else web.Response(text="no", status=told)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_post("/api/show", beside)
    app.router.add_get("/api/ps", beside)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model = Model(OpenAIModel(Endpoint(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", timeout=60), "m"))
    try:
        yield model, asked
    finally:
        await model.close()
        await runner.cleanup()


@pytest.mark.parametrize(
    ("shown", "running", "window"),
    [
        (TRAINED | {"parameters": 'stop    "<|im"\nnum_ctx                        8192'}, {"models": []}, 8192),
        (
            TRAINED,
            {"models": [{"name": "other:latest", "context_length": 1}, {"name": "m:latest", "context_length": 16384}]},
            16384,
        ),
        (TRAINED, {"models": [{"name": "m:latest"}]}, 4096),
        ({"model_info": {"gemma.context_length": 2048}, "parameters": "num_ctx 8192"}, {}, 2048),
        (TRAINED | {"parameters": None, "model_info": None}, 404, 4096),
        (404, {"models": []}, 0),
        (TRAINED, {"models": 3}, 4096),
        ([1], "x", 0),
    ],
)
async def test_the_window_of_a_model_of_ollama_is_that_which_is_in_force(shown: Any, running: Any, window: int) -> None:
    """`num_ctx` of the model, that with which it is loaded, or Ollama's default; never more than the model has."""
    async with ollama(shown, running) as (model, _):
        probe = model.breakers[0].probe
        assert probe
        await probe.look()
        assert (model.window, probe.error) == (window, None)


async def test_only_ollama_is_asked_beside_v1() -> None:
    async with ollama(TRAINED, {}, owned_by="vllm") as (model, asked):
        await model.breakers[0].probe.look()
        assert (model.window, asked) == (0, [])


async def test_a_refused_prompt_tells_the_window_for_the_next_question(llm: FakeLLM, model: Model) -> None:
    """The question whose prompt was too long gets a quotation; the next one an answer."""
    llm.reply = strict(4096)
    assert not await written(model, turn(hits=HITS))
    assert model.window == 4096
    assert await written(model, turn(hits=HITS))
