"""Sends an answer, as a whole or as server-sent events: all pieces that have arrived go out in one write. Ends it when the client
disconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.core.turn import AnswerRecord, Done, Event, Failure, Source, Status, Text
from app.http.bodies import JsonResponse
from app.http.door import RequestInfo, log_error, shutdown_error
from app.http.sse import HEADERS, KEEP_ALIVE, EventQueue
from app.routes.keeping import Keeping
from app.routes.service import Service

DISCLOSURE = "ai-disclosure"
"""Header that says to programs that a machine answers (draft-abaris-aicdh-01)."""
WRITTEN, QUOTED = "mode=machine-generated", "mode=ai-modified"
"""Its values: a language model may have written the answer; a machine has chosen what people wrote."""
OPENING = (Text, Source, Status, Failure)
"""Events that decide between a stream and an HTTP error."""


class AnswerFormat(Protocol):
    """The form of one answer in one of the APIs, as a whole or as the bytes of a stream."""

    @property
    def status(self) -> bool:
        """True if it has status lines."""

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


def own_fields(done: Done) -> Any:
    """The fields of the end of an answer that OpenAI's don't have, as far as they say something."""
    fields = {
        "extractive": done.extractive, "refused": done.refused, "unsupported": done.unsupported,
        "verbatim": done.verbatim, "follow_ups": done.follow_ups, "trace": done.trace,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value}


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
        self._disclosed = WRITTEN if service.assistants.model else QUOTED
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
                    told = {DISCLOSURE: self._disclosed}
                    await JsonResponse(self._form.whole(record), headers=told)(scope, receive, send)
        except asyncio.CancelledError as error:
            if not self._open:
                raise shutdown_error() from error
            await send({"type": "http.response.body", "body": self._encoded(Failure(shutdown_error()))})
        finally:
            if keeping:
                keeping.left()

    async def _send_stream(self, inbox: EventQueue, send: Send) -> None:
        events, ended = await self._first_events(inbox), False
        told = (DISCLOSURE.encode(), self._disclosed.encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, told]})
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
