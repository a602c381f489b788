"""POST /v1/chat/completions: answers a question, streamed or as one body."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.access import Access
from app.api.bodies import JsonResponse
from app.api.conversation import from_chat
from app.api.conversations.keeping import keeping_of, new_answer_id
from app.api.conversations.place import place_of_chat
from app.api.event_queue import EventQueue
from app.api.middleware.requestlog import RequestInfo, info_of, log_error
from app.api.middleware.shutdown import shutdown_error
from app.api.openwebui.display import Display, display, highest_source_number
from app.api.openwebui.tasks import run_task, task_of
from app.api.request_models import ChatRequest
from app.api.service import Service
from app.api.stream import AnswerFormat, ChatFormat, CompletedAnswer, Stream
from app.core import turn
from app.core.log_message import LogMessage
from app.core.record import AnswerRecord
from app.core.turn import Done, Event, Failure, Source, Text, Usage

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

log = logging.getLogger("app.api")


@dataclass(frozen=True)
class Chat:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """The answer to the last question of the conversation."""
        access = self.service.access(request)
        chat = await self.service.read(request, ChatRequest)
        info = info_of(request)
        info.fields.update(model=chat.model, stream=bool(chat.stream))
        assistant = self.service.assistant(access, chat.model)
        stream = bool(chat.stream)
        sources = "events" if chat.events else self._sources(access, assistant)
        shown = display(request.headers, sources, stream=stream)
        record = AnswerRecord(assistant.id, stream)
        id_ = f"chatcmpl-{new_answer_id(self.service, info)}"
        if task := task_of(chat, request.headers):
            record.task = task.key
            shown = Display()
            model, settings = self.service.assistants.model, self.service.settings
            events: AsyncIterator[Event] = run_task(task, chat, model, settings, record)
        else:
            trace, assistant = self._may_trace(request, chat), self._overridden(request, chat, assistant)
            language = self.service.reader_language(request, chat.language)
            place = await place_of_chat(self.service, request, access, chat)
            asked = replace(self._asked(chat, info, shown, place.history), trace=trace, language=language)
            info.keeping = keeping_of(self.service, request.headers, place, record, (id_, asked.question))
            answered = assistant.answer if chat.overrides else partial(self.service.answer, request, assistant)
            events = answered(asked, record)
        info.answer = record
        form = ChatFormat(id_, int(time.time()), assistant.id, chat.include_usage, shown.events)
        return Answer(self.service, info, form, events, stream=stream, status=shown.status)

    def _asked(
        self, chat: ChatRequest, info: RequestInfo, shown: Display, history: Sequence[turn.Message]
    ) -> turn.Request:
        asked = from_chat(chat, info.id, max_question=self.service.settings.max_question, history=history)
        log.debug(LogMessage("question", id=info.id, text=asked.question))
        first = highest_source_number(asked.attached) + 1 if shown.events else 1
        return replace(asked, links=shown.links, first_number=first)

    def _sources(self, access: Access, assistant: Assistant) -> str:
        """The form of sources configured for this client's key or this assistant; empty if not configured."""
        return self.service.settings.key_sources.get(access.key, assistant.sources)

    def _may_trace(self, request: Request, chat: ChatRequest) -> bool:
        """Whether the request asks for a trace. Raises `RequestError` if it does so without an admin key."""
        if not chat.trace:
            return False
        instead = ", or ask with `docs-assistant ask --trace`"
        self.service.check_admin(request, "Traces aren't shown", instead=instead, param="trace")
        return True

    def _overridden(self, request: Request, chat: ChatRequest, assistant: Assistant) -> Assistant:
        """The assistant with the settings and prompts of the request. Raises `RequestError` without an admin key."""
        if chat.overrides is None:
            return assistant
        self.service.check_admin(request, "Settings can't be overridden", param="overrides")
        return assistant.overridden(chat.overrides.overrides)


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
        status: bool = False,
    ) -> None:
        super().__init__()
        self._service = service
        self._info = info
        self._stream = stream
        self._status = status
        self._form = form
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the answer. Raises any error that occurs before the headers are sent."""
        limits, record, keeping = self._service.limits, self._info.answer, self._info.keeping
        ending = keeping.ended if keeping else None
        queue = EventQueue(self._events, receive, status=self._status, limits=limits, record=record, ending=ending)
        try:
            async with queue as inbox:
                await self._send(inbox, scope, receive, send)
        finally:
            if keeping:
                keeping.left()

    async def _send(self, inbox: EventQueue, scope: Scope, receive: Receive, send: Send) -> None:
        if self._stream:
            await self._send_stream(inbox, send)
            return
        try:
            response = await self._whole(inbox)
        except asyncio.CancelledError as error:
            raise shutdown_error() from error
        await response(scope, receive, send)

    async def _send_stream(self, inbox: EventQueue, send: Send) -> None:
        stream = Stream(inbox, send, self._form.encoder(), self._info.id)
        try:
            await stream.run(self._service.open_after, self._service.keep_alive)
        except asyncio.CancelledError as error:
            if not stream.open:
                raise shutdown_error() from error
            await stream.break_off(shutdown_error())
        if stream.error:
            log_error(self._info, stream.error)

    async def _whole(self, inbox: EventQueue) -> Response:
        texts, usage, sources = list[str](), Usage(), list[Source]()
        while True:
            for event in await inbox.take():
                match event:
                    case Text():
                        texts.append(event.text)
                    case Usage():
                        usage += event
                    case Failure():
                        raise event.error
                    case Source():
                        sources.append(event)
                    case Done():
                        return JsonResponse(self._form.whole(CompletedAnswer("".join(texts), usage, sources, event)))
