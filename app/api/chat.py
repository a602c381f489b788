"""/v1/chat/completions: reads the conversation of a request and answers its question, as a stream or as a whole."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.bodies import MAX_QUESTION, JsonResponse
from app.api.keeping import keeping_of, new_answer_id, place_of_chat
from app.api.middleware.admission import shutdown_error
from app.api.middleware.keys import Access
from app.api.middleware.requestlog import RequestInfo, info_of, log_error
from app.api.openwebui import Display, display, highest_source_number, is_task, run_task, task_of, unwrap_question
from app.api.request_models import ChatMessage, ChatRequest, SearchFilters
from app.api.service import Service
from app.api.stream import AnswerFormat, ChatFormat, CompletedAnswer, EventQueue, Stream
from app.core import turn
from app.core.errors import RequestError
from app.core.log_message import LogMessage
from app.core.turn import AnswerRecord, Done, Event, Failure, Source, Text, Usage

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

log = logging.getLogger("app.api")

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
PLACEHOLDERS = {
    "image_url": "[image]",
    "input_image": "[image]",
    "input_audio": "[audio]",
    "file": "[file]",
    "input_file": "[file]",
}
MAX_MESSAGES = 50  # the most recent messages of a conversation; older ones are ignored
MAX_MESSAGE_CHARS = 4_000  # of an earlier message; longer ones keep their beginning and end
MAX_HISTORY_CHARS = 32_000  # of all earlier messages together
MAX_ATTACHED_CHARS = 200_000  # of attachments; more than fits into the context window of a model
CUT = "\n…\n"


class Part(Protocol):
    """A part of a message; images, audio and files have neither text nor refusal."""

    @property
    def type(self) -> str:
        """The type, as the API names it."""
        ...

    @property
    def text(self) -> str | None:
        """The text of a part that has one."""
        ...

    @property
    def refusal(self) -> str | None:
        """The text that a model said in place of an answer."""
        ...


class AnswerFields(Protocol):
    """The fields of a request that are the same in all APIs that answer."""

    model: str
    filters: SearchFilters
    persona: str | None
    page: str | None
    stream: bool | None


@dataclass(frozen=True, slots=True)
class InputMessage:
    """A message of a request; `param` is its path in it."""

    role: str
    content: str | Sequence[Part] | None
    param: str

    def text(self, *, is_question: bool) -> str:
        """The text of the message. Raises `RequestError` if content is missing, or if the question contains anything but text."""
        if self.content is None and self.role in ("system", "user"):
            raise RequestError(f"{self.param}: is missing.", param=self.param)
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(
            _part(part, f"{self.param}[{i}]", is_question=is_question) for i, part in enumerate(self.content)
        )


def from_chat(chat: ChatRequest, id: str, *, history: Sequence[turn.Message] = ()) -> turn.Request:  # noqa: A002
    """The request for an assistant; `history` comes before its messages.

    Raises `RequestError` if the question is missing or too long.
    """
    messages_in = [_chat_message(message, i) for i, message in enumerate(chat.messages)]
    request = request_of([*earlier(history), *messages_in], "messages")
    return with_fields(replace(request, id=id, sampling=_sampling(chat)), chat)


def earlier(history: Sequence[turn.Message]) -> list[InputMessage]:
    """Returns the earlier messages, from a kept conversation."""
    return [InputMessage(message.role, message.content, "conversation") for message in history]


def with_fields(request: turn.Request, body: AnswerFields) -> turn.Request:
    """The request with the fields that all APIs have."""
    return replace(
        request,
        assistant=body.model,
        filters=body.filters.filters,
        persona=body.persona or "",
        page=body.page or "",
        whole=not body.stream,
    )


def _chat_message(message: ChatMessage, index: int) -> InputMessage:
    return InputMessage(ROLES.get(message.role, ""), message.content, f"messages[{index}].content")


def request_of(messages_in: Sequence[InputMessage], param: str) -> turn.Request:
    """The request of these messages, which are the field `param`. Raises `RequestError` if the question is missing or too long."""
    last = max((i for i, message in enumerate(messages_in) if message.role == "user"), default=None)
    if last is None:
        raise RequestError(f"{param}: there is no question, because no message has the role 'user'.", param=param)
    messages, attached = list[turn.Message](), list[str]()
    for i, message in enumerate(messages_in):
        text = message.text(is_question=i == last)
        if message.role != "system" and (
            last - i > MAX_MESSAGES or (message.role == "user" and i != last and is_task(text))
        ):
            continue  # too old, or a task of Open WebUI (a title, tags), which is no part of the conversation
        if message.role != "assistant":
            own, more = unwrap_question(text)
            if own or i != last:  # an unknown template may put the question elsewhere; then use the whole text
                text = own
                attached += more if i == last or message.role == "system" else ()
        if i == last:
            _check_question(text.strip(), message.param)
        if message.role and text.strip():
            messages.append(turn.Message(message.role, text if i == last else _abridged(text)))
    return turn.Request(tuple(_recent(messages)), attached=tuple(_first_attached(attached)))


def _abridged(text: str) -> str:
    """The text, with the middle of a long one cut out."""
    return (
        text
        if len(text) <= MAX_MESSAGE_CHARS
        else text[: MAX_MESSAGE_CHARS // 2] + CUT + text[-MAX_MESSAGE_CHARS // 2 :]
    )


def _recent(messages: Sequence[turn.Message]) -> list[turn.Message]:
    """The question and the messages closest to it that fit into `MAX_HISTORY_CHARS`; the question has its own limit."""
    question = max(i for i, message in enumerate(messages) if message.role == "user")
    room, kept = MAX_HISTORY_CHARS, list[turn.Message]()
    for i, message in sorted(enumerate(messages), reverse=True):
        room -= len(message.content) if i != question else 0
        if room >= 0:
            kept.append(message)
    return kept[::-1]


def _first_attached(attached: Sequence[str]) -> list[str]:
    """The attachments, cut after `MAX_ATTACHED_CHARS` in total."""
    room, kept = MAX_ATTACHED_CHARS, list[str]()
    for text in attached:
        kept += [text[:room]] if room > 0 else []
        room -= len(text)
    return kept


def _check_question(question: str, param: str) -> None:
    if not question:
        raise RequestError(f"{param}: the question is empty.", param=param)
    if len(question) > MAX_QUESTION:
        raise RequestError(
            f"The question has {len(question)} characters, but at most {MAX_QUESTION} are allowed. Shorten it.",
            param=param,
            code="too_long",
        )


def _sampling(chat: ChatRequest) -> turn.Sampling:
    stop = (chat.stop,) if isinstance(chat.stop, str) else tuple(chat.stop or ())
    if len(stop) > 4:
        raise RequestError(f"stop: {len(stop)} texts are given, but at most four are allowed.", param="stop")
    return turn.Sampling(chat.temperature, chat.max_completion_tokens or chat.max_tokens, stop, chat.seed)


def _part(part: Part, param: str, *, is_question: bool) -> str:
    if placeholder := PLACEHOLDERS.get(part.type):
        if is_question:
            raise RequestError(
                f"This assistant reads only text: describe in words what {placeholder} in the question shows ({param}).",
                param=param,
                code="unsupported_content",
            )
        return placeholder
    name = "refusal" if part.type == "refusal" else "text"
    text = part.refusal if name == "refusal" else part.text
    if text is None:
        raise RequestError(f"{param}.{name}: is missing.", param=f"{param}.{name}")
    return text


@dataclass(frozen=True)
class Chat:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """The answer to the last question of the conversation."""
        access = self.service.access(request)
        chat = await self.service.read(request, ChatRequest, small=False)
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
        asked = from_chat(chat, info.id, history=history)
        log.debug(LogMessage("question", id=info.id, text=asked.question))
        first = highest_source_number(asked.attached) + 1 if shown.events else 1
        return replace(asked, links=shown.links, first_number=first)

    def _sources(self, access: Access, assistant: Assistant) -> str:
        """The form of sources configured for this client's key or this assistant; empty if not configured."""
        return self.service.settings.tuning.key_sources.get(access.key, assistant.sources)

    def _may_trace(self, request: Request, chat: ChatRequest) -> bool:
        """True if the request asks for a trace. Raises `RequestError` if it does so without an admin key."""
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
