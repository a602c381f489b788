"""An OpenAI-compatible server with scripted answers, on a real port: it stands in for the language model only."""

import asyncio
import json
import threading
from array import array
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Reply:
    """What the server does with one call: say `text` in `pieces`, wait, refuse, repeat something for ever, or die."""

    text: str = "The answer [1]."
    status: int = 200
    delay: float = 0.0
    piece_delay: float = 0.0
    dies_after: int | None = None
    finish: str | None = "stop"
    reasoning: str = ""
    raw: str | None = None
    repeated: str = ""
    held: dict[int, threading.Event] = field(default_factory=dict)  # after which piece it waits for what
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def pieces(self) -> list[str]:
        return [word + " " for word in self.text.split(" ")] if self.text else []


class FakeLLM:
    """Answers by `reply(body)`, keeps every request body in `calls`, and counts calls that clients gave up."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []  # of the calls
        self.request_ids: list[str] = []
        self.embedded: list[list[str]] = []
        self.embedding_models: list[str] = []  # of these calls
        self.cancelled = 0
        self.open = 0  # chat calls under way
        self.sent = 0  # pieces of streams
        self.reply: Callable[[dict[str, Any]], Reply] = lambda _: Reply()
        self.embedding_status = 200
        self.failures: list[Reply] = []  # of the next calls for embeddings; one without a status breaks off
        self.most_texts = 2048  # in one call
        self.too_many = Reply("batch size is too large", status=413)
        self.batches: list[int] = []  # numbers of texts in calls, also in refused ones
        self.forms = {"float", "base64"}  # of vectors; of others, it refuses the call
        self.models_status = 200
        self.listed = 0  # requests for the list of models
        self.embedding_hook: Callable[[], None] = lambda: None
        self.dimension = 8
        self.dimensions: dict[str, int] = {}  # of models whose vectors have another length
        self.url = ""
        self.models = ["fake", "other"]
        self.windows: dict[str, int] = {}  # of models whose window the list says
        self.entry: Callable[[str], dict[str, Any]] = lambda _: {}  # what else the list says of a model
        self.key = ""  # what the list of models needs; nothing if empty

    def _entry(self, name: str) -> dict[str, Any]:
        meta = {"meta": {"n_ctx": self.windows[name]}} if name in self.windows else {}
        return {"id": name, "object": "model", **meta, **self.entry(name)}

    async def list_models(self, request: web.Request) -> web.Response:
        self.listed += 1
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.json_response({"error": {"message": "Incorrect API key"}}, status=401)
        return web.json_response(
            {"object": "list", "data": [self._entry(name) for name in self.models]},
            status=self.models_status,
        )

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls.append(body)
        self.headers.append(request.headers)
        self.request_ids.append(request.headers.get("x-request-id", ""))
        reply = self.reply(body)
        self.open += 1
        try:
            return await self._stream(request, reply) if body.get("stream") else await self._whole(reply)
        except (asyncio.CancelledError, ConnectionResetError):
            self.cancelled += 1
            raise
        finally:
            self.open -= 1

    async def _whole(self, reply: Reply) -> web.Response:
        await asyncio.sleep(reply.delay)
        if reply.raw is not None or reply.status != 200:
            return web.Response(text=reply.raw or reply.text, status=reply.status, headers=reply.headers)
        message = {"role": "assistant", "content": reply.text, "reasoning_content": reply.reasoning}
        return web.json_response(
            {
                "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
                "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
            }
        )

    async def _stream(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        await asyncio.sleep(reply.delay)
        if reply.status != 200:
            return web.Response(text=reply.raw or reply.text, status=reply.status, headers=reply.headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        deltas = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": reply.reasoning}] if reply.reasoning else []
        deltas += [{"content": piece} for piece in reply.pieces]
        for number, delta in enumerate(deltas):
            if reply.dies_after is not None and number > reply.dies_after:
                await asyncio.sleep(0.2)  # aiohttp drops what a client hasn't read yet when a connection breaks off
                request.transport.close()  # type: ignore[union-attr]  # as the kernel does for a killed process
                return response
            await self._event(response, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            self.sent += 1
            if number in reply.held:
                assert await asyncio.to_thread(reply.held[number].wait, 120), "nobody let it go on"
            await asyncio.sleep(reply.piece_delay)
        while reply.repeated:  # until the client leaves
            await response.write(reply.repeated.encode())
            await asyncio.sleep(reply.piece_delay)
        if reply.raw:
            await response.write(reply.raw.encode())
        if reply.finish:
            await self._event(response, {"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]})
            usage = {"prompt_tokens": 11, "completion_tokens": len(reply.pieces)}
            await self._event(response, {"choices": [], "usage": usage})
            await response.write(b"data: [DONE]\n\n")
        return response

    async def _event(self, response: web.StreamResponse, data: dict[str, Any]) -> None:
        await response.write(b"data: " + json.dumps(data).encode() + b"\n\n")

    async def embeddings(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.batches.append(len(body["input"]))
        if failure := self.failures.pop(0) if self.failures else None:
            if not failure.status:
                request.transport.close()  # type: ignore[union-attr]
            return web.Response(text=failure.text, status=failure.status or 500, headers=failure.headers)
        if len(body["input"]) > self.most_texts:
            return web.Response(text=self.too_many.text, status=self.too_many.status)
        self.embedded.append(body["input"])
        self.embedding_models.append(body["model"])
        self.request_ids.append(request.headers.get("x-request-id", ""))
        self.embedding_hook()
        if self.embedding_status != 200:
            return web.Response(text="no embeddings today", status=self.embedding_status)
        if (form := body.get("encoding_format", "float")) not in self.forms:
            return web.json_response({"error": {"message": f"{form} isn't known"}}, status=422)
        vectors: list[Any] = [self._vector(text, body["model"]) for text in body["input"]]
        if form == "base64":
            vectors = [b64encode(array("f", vector).tobytes()).decode() for vector in vectors]
        rows = [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return web.json_response({"data": rows[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}})

    def _vector(self, text: str, model: str = "") -> list[float]:
        length = self.dimensions.get(model, self.dimension)
        return [1.0 + sum(ord(c) for c in text[i::length]) % 97 for i in range(length)]


@asynccontextmanager
async def fake_llm(llm: FakeLLM | None = None, port: int = 0) -> AsyncIterator[FakeLLM]:
    """A running server; its `url` ends in /v1. The one that is given starts again, on its old port."""
    llm = llm or FakeLLM()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", llm.chat)
    app.router.add_post("/v1/embeddings", llm.embeddings)
    app.router.add_get("/v1/models", llm.list_models)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    llm.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield llm
    finally:
        await runner.cleanup()
