"""Serves a model from files over the OpenAI chat API, for a whole service or an indexing run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from app.core.errors import ModelError
from app.core.turn import Completion, Message, Usage
from app.models.protocols import CallOptions, Model
from tests.scripted.model import words

_OPTIONS = CallOptions()


def create_app(model: Model) -> FastAPI:
    """`/v1/models` and `/v1/chat/completions`, streamed or not. Status 400 for messages without an answer."""
    app = FastAPI(title="Stand-in for a language model", openapi_url=None)

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": model.name, "object": "model", "owned_by": "eval"}]}

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        try:
            body = await request.json()
            messages = _messages(body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _refusal(f"This is no chat request: {type(error).__name__} {error}")
        try:
            answer = await model.complete(messages, _OPTIONS)
        except ModelError as error:
            return _refusal(str(error))
        if body.get("stream"):
            with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(_events(model, answer, with_usage=with_usage), media_type="text/event-stream")
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer.text},
            "finish_reason": answer.finish_reason,
        }
        return JSONResponse(
            {**_head(model, "chat.completion"), "choices": [choice], "usage": _usage_fields(answer.usage)}
        )

    return app


def _messages(body: Mapping[str, Any]) -> list[Message]:
    return [Message(str(m["role"]), _content(m["content"])) for m in body["messages"]]


def _content(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _events(model: Model, answer: Completion, *, with_usage: bool) -> Iterator[str]:
    head = _head(model, "chat.completion.chunk")

    def event(delta: Mapping[str, str], finish: str | None = None) -> str:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield event({"role": "assistant", "content": ""})
    for word in words(answer.text):
        yield event({"content": word})
    yield event({}, answer.finish_reason)
    if with_usage:
        yield _event({**head, "choices": [], "usage": _usage_fields(answer.usage)})
    yield "data: [DONE]\n\n"


def _event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _head(model: Model, kind: str) -> dict[str, Any]:
    created = int(time.time())
    return {"id": f"chatcmpl-scripted-{time.time_ns()}", "object": kind, "created": created, "model": model.name}


def _usage_fields(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _refusal(message: str) -> JSONResponse:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": error}, status_code=400)
