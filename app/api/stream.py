"""Writes an answer as server-sent events; all pieces that have arrived go out in one write. Ends it when the client disconnects."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Send

from app.api.answer_models import ChatCompletion, ChatCompletionChunk, ChunkChoice, Delta, UsageObject
from app.api.bodies import encodable
from app.api.errors import api_error
from app.api.middleware.admission import AnswerLimits
from app.api.openwebui import source_event, status_event
from app.core.errors import ModelError
from app.core.log_message import LogMessage
from app.core.turn import AnswerRecord, Done, Event, Failure, FinishReason, Reasoning, Source, Status, Text, Usage

log = logging.getLogger("app.api")
CLEANUP_SECONDS = 5.0  # time for a pipeline to clean up after its last event


class EventQueue:
    """Reads an answer in a background task, so that `take` returns all pieces that have arrived.

    `status` includes status lines; `limits` bounds the wait for a free place and the duration of the answer; `record`
    gets the events, and `ending` is awaited before the last one is given out. Leaving the context closes the answer and cancels its upstream calls. The task never waits for the client: a slow reader
    costs a few kilobytes of memory, but no connection to a model.
    """

    def __init__(
        self,
        events: AsyncIterator[Event],
        receive: Receive,
        *,
        status: bool = False,
        limits: AnswerLimits | None = None,
        record: AnswerRecord | None = None,
        ending: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._events = events
        self._ending = ending
        self._record = record or AnswerRecord()
        self._limits = limits or AnswerLimits()
        self._status = status
        self._receive = receive
        self._waiting: list[Event] = []
        self._disconnected = False
        self._finished = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._taken_at = 0.0

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read())
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer:
            self._timer.cancel()
        self._watcher.cancel()
        if self._finished and not self._reader.done():
            await asyncio.wait([self._reader], timeout=CLEANUP_SECONDS)
        self._reader.cancel()
        await asyncio.gather(self._reader, self._watcher, return_exceptions=True)
        for task in (self._reader, self._watcher):
            # a task keeps its cancellation until it is asked for, and with it the frames: the whole answer with its
            # passages, in a cycle that only the garbage collector finds
            with suppress(asyncio.CancelledError):
                if failed := task.exception():
                    log.warning(LogMessage("closing an answer failed", error=repr(failed)))

    async def take(self) -> list[Event]:
        """Wait for events and return all that have arrived; an empty list after the silence set with `wake_after`.

        The last event is always `Done` or `Failure`. Raises `ClientDisconnect` once the client has disconnected.
        """
        if not self._waiting and not self._disconnected:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None
        if self._disconnected:
            raise ClientDisconnect
        taken, self._waiting = self._waiting, []
        self._taken_at = time.monotonic()
        return taken

    def wake_after(self, seconds: float) -> None:
        """Make `take` return an empty list after this many seconds without an event (at most 1.5 times as many)."""
        if not self._timer:
            self._taken_at = time.monotonic()
            self._tick(seconds)

    def _tick(self, seconds: float) -> None:
        # one recurring timer: a timeout for each piece would cost more than the piece
        if time.monotonic() - self._taken_at >= seconds:
            self._notify()
        self._timer = asyncio.get_running_loop().call_later(seconds / 2, self._tick, seconds)

    async def _read(self) -> None:
        record = self._record
        try:
            async with self._limits.answer() as deadline:
                async for event in self._events:
                    if isinstance(event, Text) and record.first_text is None:
                        deadline.began()
                    if isinstance(event, Done) and record.first_text is None:
                        break
                    if not self._finished:  # after the last event, keep reading so that the pipeline can finish
                        await self._put(event)
            if self._finished:
                return
            await self._put(
                Failure(ModelError("The answer broke off." if record.first_text else "The answer was empty."))
            )
        except Exception as error:  # noqa: BLE001  # every error is reported to the client
            await self._put(Failure(error))
        finally:
            if close := getattr(self._events, "aclose", None):
                await close()

    async def _put(self, event: Event) -> None:
        self._record.add(event)
        if isinstance(event, Reasoning) or (isinstance(event, Status) and not self._status):
            return  # not sent to the client, so they must not reset the keep-alive timer either
        if isinstance(event, Done | Failure):
            if self._ending:
                await self._ending()
            self._finished = True
        self._waiting.append(event)
        self._notify()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._disconnected = True
        self._notify()

    def _notify(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


END = b"data: [DONE]\n\n"
MARK = "\0"  # stands for the text in the encoded form of a chunk
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

    def failure(self, event: Failure, request_id: str) -> bytes:
        """The end of the stream after an error."""
        ...


class AnswerFormat(Protocol):
    """The format of an answer in one of the APIs."""

    def encoder(self) -> StreamEncoder:
        """An encoder for a stream."""
        ...

    def whole(self, answer: CompletedAnswer) -> Mapping[str, Any]:
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

    def whole(self, answer: CompletedAnswer) -> ChatCompletion:
        """The body of a chat completion that isn't streamed."""
        content = encodable(answer.text)
        body: ChatCompletion = {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content},
                    "finish_reason": answer.done.finish_reason,
                }
            ],
            "usage": usage_object(answer.usage),
            "sources": answer.sources,
        }
        if answer.done.trace:
            body["trace"] = answer.done.trace
        if answer.done.extractive:
            body["extractive"] = True
        return body

    def chunk(self, delta: Delta | None, finish_reason: FinishReason | None = None) -> ChatCompletionChunk:
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


class ChatEncoder:
    """Encodes events as chunks of the chat API."""

    def __init__(self, form: ChatFormat) -> None:
        self._form = form
        # chunks with text differ only in the text, so the rest is encoded once
        self._before, _, self._after = _event(form.chunk({"content": MARK})).rpartition(orjson.dumps(MARK))
        self._began = False

    def text(self, text: str) -> bytes:
        """A chunk with a piece of the answer; the first one follows a chunk with the role."""
        piece = self._before + orjson.dumps(encodable(text)) + self._after
        return piece if self._began else self._role() + piece

    def event(self, event: Source | Status) -> bytes:
        """A chunk without text that carries an event of Open WebUI; empty for a source if the client wants no events."""
        if isinstance(event, Source) and not self._form.events:
            return b""
        chunk = self._form.chunk({"content": ""})
        chunk["event"] = source_event(event) if isinstance(event, Source) else status_event(event)
        return self._role() + _event(chunk)

    def _role(self) -> bytes:
        """The chunk with the role the first time, then nothing."""
        if self._began:
            return b""
        self._began = True
        return _event(self._form.chunk({"role": "assistant", "content": ""}))

    def done(self, event: Done, usage: Usage, sources: Sequence[Source]) -> bytes:
        """The chunk with finish_reason and sources, the chunk with the usage if it was requested, and `[DONE]`."""
        last = self._form.chunk({}, event.finish_reason)
        last["sources"] = sources
        if event.extractive:
            last["extractive"] = True
        if event.trace:
            last["trace"] = event.trace
        if not self._form.include_usage:
            return _event(last) + END
        counted = self._form.chunk(None)
        counted["usage"] = usage_object(usage)
        return _event(last) + _event(counted) + END

    def failure(self, event: Failure, request_id: str) -> bytes:
        """An error event, with the trace if there is one, and `[DONE]`."""
        body = api_error(event.error, request_id).body
        if event.trace:
            body = orjson.dumps({**orjson.loads(body), "trace": event.trace})
        return b"data: " + body + b"\n\n" + END


def _event(chunk: ChatCompletionChunk) -> bytes:
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


def usage_object(usage: Usage) -> UsageObject:
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
        await self.send({"type": "http.response.body", "body": self.encoder.failure(Failure(error), self.request_id)})

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
                    out.append(self.encoder.failure(event, self.request_id))
                    return b"".join(out), True
        return b"".join(out), False


def _opening_event(events: Iterable[Event]) -> Event | None:
    """The first event that decides between a stream and an HTTP error."""
    return next((event for event in events if isinstance(event, Text | Source | Status | Failure)), None)
