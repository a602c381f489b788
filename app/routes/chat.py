"""/v1/chat/completions: answers the question of a request in the form of the chat API, as a stream or as a whole."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.core import turn
from app.core.turn import AnswerRecord, Failure, FinishReason, Source, Status, Usage
from app.http.bodies import encodable
from app.http.door import info_of
from app.http.errors import api_error
from app.http.sse import encoded
from app.routes import openwebui
from app.routes.answer_models import AnswerMessage, ChatCompletion, ChatCompletionChunk, ChunkChoice, Delta, UsageObject
from app.routes.ask import Ask
from app.routes.description import ANSWER_FAILURES, answers, body_of
from app.routes.keeping import keeping_of, new_answer_id
from app.routes.request_models import ChatRequest
from app.routes.routers import router_of
from app.routes.service import Service
from app.routes.stream import Answer, own_fields

PATH = "/v1/chat/completions"
END = encoded(b"[DONE]")
MARK = "\0"  # stands for the text in the encoded form of a chunk


@dataclass(frozen=True)
class Chat:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """The answer to the last question of the conversation."""
        access = self.service.access(request)
        chat = await self.service.read(request, ChatRequest, small=False)
        info_of(request).fields.update(model=chat.model, stream=bool(chat.stream))
        return self.answer(request, await openwebui.ask_of(self.service, request, access, chat))

    def answer(self, request: Request, ask: Ask) -> Answer:
        """The answer to what is asked; for a task, what it gives."""
        info = info_of(request)
        info.answer = record = AnswerRecord(ask.assistant.id, ask.stream)
        id_ = f"chatcmpl-{new_answer_id(self.service, info)}"
        keeping = None
        if isinstance(ask.what, turn.Request):
            keeping = keeping_of(self.service, request, ask.place, record, (id_, ask.what.question), ask.reader)
            if ask.cached:
                events = self.service.answer(request, ask.assistant, ask.what, record)
            else:
                events = ask.assistant.answer(ask.what, record)
        else:
            record.task, events = ask.what.key, ask.what.run(record)
        form = ChatFormat(
            id_, int(time.time()), ask.assistant.id, ask.include_usage, ask.display.events, ask.display.status
        )
        return Answer(self.service, info, form, events, stream=ask.stream, keeping=keeping)


@dataclass(slots=True)
class ChatFormat:
    """The form of the chat API. Its fields are the same in all chunks; `created` is in Unix seconds."""

    id: str
    created: int
    model: str
    include_usage: bool = False
    events: bool = False  # also send sources as events of Open WebUI
    status: bool = False
    _began: bool = False
    _around: tuple[bytes, bytes] = (b"", b"")

    def whole(self, record: AnswerRecord) -> ChatCompletion:
        """The body of a chat completion that isn't streamed."""
        assert record.done is not None
        message: AnswerMessage = {"role": "assistant", "content": encodable("".join(record.texts))}
        body: ChatCompletion = {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": record.done.finish_reason}],
            "usage": usage_object(record.usage),
            "sources": record.sources,
        }
        body.update(own_fields(record.done))
        return body

    def text(self, text: str) -> bytes:
        """A chunk with a piece of the answer; the first one follows a chunk with the role."""
        role = b"" if self._began else self._role()
        before, after = self._around
        return role + before + orjson.dumps(encodable(text)) + after

    def event(self, event: Source | Status) -> bytes:
        """A chunk without text that carries an event of Open WebUI; empty for a source if the client wants no events."""
        if isinstance(event, Source) and not self.events:
            return b""
        chunk = self._chunk({"content": ""})
        chunk["event"] = _source_event(event) if isinstance(event, Source) else _status_event(event)
        return self._role() + _event(chunk)

    def done(self, record: AnswerRecord) -> bytes:
        """The chunk with finish_reason and sources, the chunk with the usage if it was requested, and `[DONE]`."""
        assert record.done is not None
        last = self._chunk({}, record.done.finish_reason)
        last["sources"] = record.sources
        last.update(own_fields(record.done))
        if not self.include_usage:
            return _event(last) + END
        counted = self._chunk(None)
        counted["usage"] = usage_object(record.usage)
        return _event(last) + _event(counted) + END

    def failure(self, event: Failure, request_id: str, record: AnswerRecord) -> bytes:  # noqa: ARG002  # of `AnswerFormat`
        """An error event, with the trace if there is one, and `[DONE]`."""
        body = api_error(event.error, request_id).body
        if event.trace:
            body = orjson.dumps({**orjson.loads(body), "trace": event.trace})
        return encoded(body) + END

    def _role(self) -> bytes:
        """The chunk with the role the first time, then nothing."""
        if self._began:
            return b""
        self._began = True
        # chunks with text differ only in the text, so the rest is encoded once
        before, _, after = _event(self._chunk({"content": MARK})).rpartition(orjson.dumps(MARK))
        self._around = before, after
        return _event(self._chunk({"role": "assistant", "content": ""}))

    def _chunk(self, delta: Delta | None, finish_reason: FinishReason | None = None) -> ChatCompletionChunk:
        """A chunk of a stream; without a delta it has no choices."""
        choices: list[ChunkChoice] = []
        if delta is not None:
            choices.append({"index": 0, "delta": delta, "finish_reason": finish_reason})
        chunk: ChatCompletionChunk = {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }
        if self.include_usage:
            chunk["usage"] = None
        return chunk


def _source_event(source: Source) -> dict[str, Any]:
    """A source as an event of Open WebUI. `external` prevents a request to Google for the icon of the host."""
    data = {
        "source": {"id": source.url, "name": source.name, "url": source.url},
        "document": [source.snippet],
        "metadata": [{"source": source.url, "name": source.name, "external": True}],
        "distances": [source.score],
    }
    return {"type": "source", "data": data}


def _status_event(status: Status) -> dict[str, Any]:
    """A status line, which Open WebUI shows above the answer; with the found sections for a client that shows them."""
    found = {"sections": status.sections} if status.sections else {}
    return {"type": "status", "data": {"description": status.text, "done": status.done, **found}}


def _event(chunk: ChatCompletionChunk) -> bytes:
    return encoded(orjson.dumps(chunk))


def usage_object(usage: Usage) -> UsageObject:
    """Token counts in the form of the OpenAI API."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total,
    }


def router(service: Service) -> APIRouter:
    """The route of the chat API."""
    chat = Chat(service)
    said = "Answers the last message of the user from the indexed pages, in the language of the message."
    completion = answers(
        ChatCompletion, ChatCompletionChunk, "The answer, or with `stream` server-sent events.", "[DONE]"
    )
    described = router_of("OpenAI API", [
        ("chat", "POST", PATH, chat, "Ask a question", None, ANSWER_FAILURES | completion, {"description": said} | body_of(ChatRequest)),
    ])  # fmt: skip
    # serves what FastAPI's route behind it describes, which would look for dependencies at each request
    described.routes.insert(0, Route(PATH, chat.__call__, methods=["POST"]))
    return described
