"""Sends an answer, as a whole or as server-sent events: all pieces that have arrived go out in one write. Ends it when the client
disconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.core.turn import AnswerRecord, Done, Event, Failure, FinishReason, Source, Status, Text, Usage
from app.http.bodies import JsonResponse, encodable
from app.http.door import RequestInfo, log_error, shutdown_error
from app.http.errors import api_error
from app.http.sse import HEADERS, KEEP_ALIVE, EventQueue, encoded
from app.routes.answer_models import AnswerMessage, ChatCompletion, ChatCompletionChunk, ChunkChoice, Delta, UsageObject
from app.routes.keeping import Keeping
from app.routes.service import Service

END = encoded(b"[DONE]")
OPENING = (Text, Source, Status, Failure)
"""Events that decide between a stream and an HTTP error."""
MARK = "\0"  # stands for the text in the encoded form of a chunk


class AnswerFormat(Protocol):
    """The form of one answer in one of the APIs, as a whole or as the bytes of a stream. `status`: it has status lines."""

    @property
    def status(self) -> bool: ...  # noqa: D102

    def whole(self, record: AnswerRecord) -> Mapping[str, Any]:
        """The body of a response that isn't streamed."""

    def text(self, text: str) -> bytes:
        """A piece of the answer."""

    def event(self, event: Source | Status) -> bytes:
        """The bytes for this event; empty if the form doesn't send it."""

    def done(self, record: AnswerRecord) -> bytes:
        """The end of the stream."""

    def failure(self, event: Failure, request_id: str, record: AnswerRecord) -> bytes:
        """The end of the stream after an error."""


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


def own_fields(done: Done) -> Any:
    """The fields of the end of an answer that OpenAI's don't have, as far as they say something."""
    fields = {
        "extractive": done.extractive, "refused": done.refused, "unsupported": done.unsupported,
        "verbatim": done.verbatim, "follow_ups": done.follow_ups, "trace": done.trace,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value}


def usage_object(usage: Usage) -> UsageObject:
    """Token counts in the form of the OpenAI API."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total,
    }


class Answer(Response):
    """Sends the events of an answer; closes them at once when the client disconnects.

    A server that shuts down cancels it after the drain timeout; then the answer ends with an error.
    """

    def __init__(
        self,
        service: Service,
        info: RequestInfo,
        form: AnswerFormat,
        events: AsyncIterator[Event],
        *,
        stream: bool,
        keeping: Keeping | None = None,
    ) -> None:
        super().__init__()
        self._service = service
        self._info = info
        self._form = form
        self._events = events
        self._stream = stream
        self._keeping = keeping
        self._record = info.answer or AnswerRecord()
        self._open = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the answer. Raises any error that occurs before the headers are sent."""
        limits, record, keeping = self._service.limits, self._record, self._keeping
        ending = keeping.ended if keeping else None
        queue = EventQueue(self._events, receive, status=self._form.status, limits=limits, record=record, ending=ending)
        try:
            async with queue as inbox:
                if self._stream:
                    await self._send_stream(inbox, send)
                else:
                    await _ended(inbox)
                    await JsonResponse(self._form.whole(record))(scope, receive, send)
        except asyncio.CancelledError as error:
            if not self._open:
                raise shutdown_error() from error
            await send({"type": "http.response.body", "body": self._encoded(Failure(shutdown_error()))})
        finally:
            if keeping:
                keeping.left()

    async def _send_stream(self, inbox: EventQueue, send: Send) -> None:
        events, ended = await self._first_events(inbox), False
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        self._open = True
        inbox.wake_after(self._service.keep_alive)
        while not ended:
            body = b"".join(map(self._encoded, events))
            ended = bool(events) and isinstance(events[-1], Done | Failure)
            if body or not events:
                await send({"type": "http.response.body", "body": body or KEEP_ALIVE, "more_body": not ended})
            if not ended:
                events = await inbox.take()

    async def _first_events(self, inbox: EventQueue) -> list[Event]:
        """The events up to the first that opens the stream, or those of the first `open_after` seconds."""
        events: list[Event] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(self._service.open_after):
                while not (opening := [event for event in events if isinstance(event, OPENING)]):
                    events += await inbox.take()
                if isinstance(opening[0], Failure):
                    raise opening[0].error
        return events

    def _encoded(self, event: Event) -> bytes:
        match event:
            case Text():
                return self._form.text(event.text)
            case Source() | Status():
                return self._form.event(event)
            case Done():
                return self._form.done(self._record)
            case Failure():
                log_error(self._info, event.error)
                return self._form.failure(event, self._info.id, self._record)
        return b""


async def _ended(inbox: EventQueue) -> None:
    """Wait for the end of the answer. Raises the error that it ended with."""
    while True:
        last = (await inbox.take())[-1]
        if isinstance(last, Failure):
            raise last.error
        if isinstance(last, Done):
            return
