"""Writes an answer as server-sent events; all pieces that have arrived go out in one write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson
from starlette.types import Send

from app.api.bodies import json_string
from app.api.errors import api_error
from app.api.event_queue import EventQueue
from app.api.openwebui.display import source_event, status_event
from app.core.turn import Done, Event, Failure, Source, Status, Text, Usage

END = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # otherwise nginx buffers the stream
]


@dataclass(frozen=True, slots=True)
class CompletedAnswer:
    """A complete answer."""

    text: str
    usage: Usage
    sources: Sequence[Source]
    done: Done


class StreamEncoder(Protocol):
    """Encodes events as the bytes of one stream."""

    def text(self, text: str) -> bytes:
        """A piece of the answer."""
        ...

    def event(self, event: Source | Status) -> bytes:
        """The bytes for this event; empty if the format doesn't send it."""
        ...

    def done(self, event: Done, usage: Usage, sources: Sequence[Source]) -> bytes:
        """The end of the stream."""
        ...

    def failure(self, error: Exception, request_id: str) -> bytes:
        """The end of the stream after an error."""
        ...


class AnswerFormat(Protocol):
    """The format of an answer in one of the APIs."""

    def encoder(self) -> StreamEncoder:
        """An encoder for a stream."""
        ...

    def whole(self, answer: CompletedAnswer) -> dict[str, Any]:
        """The body of a response that isn't streamed."""
        ...


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """The format of the chat API. Its fields are the same in all chunks; `created` is in Unix seconds."""

    id: str
    created: int
    model: str
    include_usage: bool = False
    events: bool = False  # also send sources as events of Open WebUI

    def encoder(self) -> ChatEncoder:
        """An encoder for a stream of the chat API."""
        return ChatEncoder(self)

    def whole(self, answer: CompletedAnswer) -> dict[str, Any]:
        """The body of a chat completion that isn't streamed."""
        message = {"role": "assistant", "content": orjson.Fragment(json_string(answer.text))}
        body: dict[str, Any] = {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": answer.done.finish_reason}],
            "usage": usage_object(answer.usage),
            "sources": answer.sources,
        }
        body |= {"trace": answer.done.trace} if answer.done.trace else {}
        return {**body, "extractive": True} if answer.done.extractive else body

    @property
    def head(self) -> bytes:
        """The beginning of a chunk, up to its choices."""
        about = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model}
        return b"data: " + orjson.dumps(about)[:-1]

    @property
    def tail(self) -> bytes:
        """The end of every chunk except the one with the usage."""
        return b',"usage":null}\n\n' if self.include_usage else b"}\n\n"


class ChatEncoder:
    """Encodes events as chunks of the chat API; the constant parts of a chunk are built once."""

    def __init__(self, envelope: ChatFormat) -> None:
        self._envelope = envelope
        self._choice = envelope.head + b',"choices":[{"index":0,"delta":'
        self._before = self._choice + b'{"content":'
        self._after = b'},"finish_reason":null}]' + envelope.tail
        self._began = False

    def text(self, text: str) -> bytes:
        """A chunk with a piece of the answer; the first one follows a chunk with the role."""
        return self._role() + self._before + json_string(text) + self._after

    def event(self, event: Source | Status) -> bytes:
        """A chunk without text that carries an event of Open WebUI; empty for a source if the client wants no events."""
        if isinstance(event, Source) and not self._envelope.events:
            return b""
        answer: dict[str, Any] = source_event(event) if isinstance(event, Source) else status_event(event)
        after = b'},"finish_reason":null}],"event":' + orjson.dumps(answer) + self._envelope.tail
        return self._role() + self._before + b'""' + after

    def _role(self) -> bytes:
        """The chunk with the role the first time, then nothing."""
        if self._began:
            return b""
        self._began = True
        return self._choice + b'{"role":"assistant","content":""' + self._after

    def done(self, event: Done, usage: Usage, sources: Sequence[Source]) -> bytes:
        """The chunk with finish_reason and sources, the chunk with the usage if it was requested, and `[DONE]`."""
        extras = b',"sources":' + orjson.dumps(sources) + (b',"extractive":true' if event.extractive else b"")
        extras += b',"trace":' + orjson.dumps(event.trace) if event.trace else b""
        reason = json_string(event.finish_reason)
        last = self._choice + b'{},"finish_reason":' + reason + b"}]" + extras + self._envelope.tail
        if not self._envelope.include_usage:
            return last + END
        counts = orjson.dumps(usage_object(usage))
        return last + self._envelope.head + b',"choices":[],"usage":' + counts + b"}\n\n" + END

    def failure(self, error: Exception, request_id: str) -> bytes:
        """An error event and `[DONE]`."""
        return b"data: " + api_error(error, request_id).body + b"\n\n" + END


def usage_object(usage: Usage) -> dict[str, int]:
    """Token counts in the form of the OpenAI API."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


@dataclass
class Stream:
    """Writes one answer. `open` is True once the headers are sent; `error` is a failure after that."""

    inbox: EventQueue
    send: Send
    encoder: StreamEncoder
    request_id: str
    usage: Usage = field(default_factory=Usage)
    sources: list[Source] = field(default_factory=list)
    error: Exception | None = None
    open: bool = False

    async def run(self, open_after: float, keep_alive: float) -> None:
        """Write the whole answer. Raises any error that occurs before the headers are sent."""
        events, ended = await self._first_events(open_after), False
        await self.send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        self.open = True
        self.inbox.wake_after(keep_alive)
        while not ended:
            body, ended = self._encode(events)
            if body or not events:
                await self.send({"type": "http.response.body", "body": body or KEEP_ALIVE, "more_body": not ended})
            if not ended:
                events = await self.inbox.take()

    async def break_off(self, error: Exception) -> None:
        """End an open stream with this error."""
        self.error = error
        await self.send({"type": "http.response.body", "body": self.encoder.failure(error, self.request_id)})

    async def _first_events(self, open_after: float) -> list[Event]:
        """The events up to the first that opens the stream, or those of the first `open_after` seconds."""
        events: list[Event] = []
        try:
            async with asyncio.timeout(open_after):
                while not (answer := _opening_event(events)):
                    events += await self.inbox.take()
        except TimeoutError:
            return events
        if isinstance(answer, Failure):
            raise answer.error
        return events

    def _encode(self, events: Iterable[Event]) -> tuple[bytes, bool]:
        """The bytes of these events, and whether the stream ends with them."""
        out: list[bytes] = []
        for event in events:
            match event:
                case Text():
                    out.append(self.encoder.text(event.text))
                case Usage():
                    self.usage += event
                case Source():
                    self.sources.append(event)
                    out.append(self.encoder.event(event))
                case Status():
                    out.append(self.encoder.event(event))
                case Done():
                    out.append(self.encoder.done(event, self.usage, self.sources))
                    return b"".join(out), True
                case Failure():
                    self.error = event.error
                    out.append(self.encoder.failure(event.error, self.request_id))
                    return b"".join(out), True
        return b"".join(out), False


def _opening_event(events: Iterable[Event]) -> Event | None:
    """The first event that decides between a stream and an HTTP error."""
    return next((event for event in events if isinstance(event, Text | Source | Status | Failure)), None)
