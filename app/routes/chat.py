"""/v1/chat/completions: reads the conversation of a request and answers its question, as a stream or as a whole."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.core import turn
from app.core.errors import RequestError
from app.core.log_message import LogMessage
from app.core.turn import AnswerRecord, Event
from app.http.door import RequestInfo, info_of
from app.routes.answer_models import ChatCompletion, ChatCompletionChunk
from app.routes.description import ANSWER_FAILURES, answers, body_of
from app.routes.keeping import Keeping, keeping_of, new_answer_id, place_of_chat
from app.routes.openwebui import (
    Display,
    display,
    highest_source_number,
    run_task,
    task_of,
    template_of,
    unwrap_question,
)
from app.routes.request_models import MAX_QUESTION, AnswerRequest, ChatRequest, MessagePart
from app.routes.routers import router_of
from app.routes.service import Service
from app.routes.stream import Answer, ChatFormat
from app.text.invisible import visible

log = logging.getLogger("app.http")

PATH = "/v1/chat/completions"
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
PLACEHOLDERS = {
    "image_url": "[image]", "input_image": "[image]", "input_audio": "[audio]", "file": "[file]", "input_file": "[file]",
}  # fmt: skip
MAX_MESSAGES = 50  # the most recent messages of a conversation; older ones are ignored
MAX_MESSAGE_CHARS = 4_000  # of an earlier message; longer ones keep their beginning and end
MAX_HISTORY_CHARS = 32_000  # of all earlier messages together
MAX_ATTACHED_CHARS = 200_000  # of attachments; more than fits into the context window of a model
CUT = "\n…\n"


@dataclass(frozen=True, slots=True)
class InputMessage:
    """A message of a request; `param` is its path in it."""

    role: str
    content: str | Sequence[MessagePart] | None
    param: str

    def text(self, *, is_question: bool) -> str:
        """What anybody can see of the message. Raises `RequestError` if content is missing, or if the question contains anything but text."""
        if self.content is None and self.role in ("system", "user"):
            raise RequestError(f"{self.param}: is missing.", param=self.param)
        if self.content is None or isinstance(self.content, str):
            return visible(self.content or "")
        parts = [_part(part, f"{self.param}[{i}]", is_question=is_question) for i, part in enumerate(self.content)]
        return visible("\n".join(parts))


def from_chat(chat: ChatRequest, id: str, *, history: Sequence[turn.Message] = ()) -> turn.Request:  # noqa: A002
    """The request for an assistant; `history` comes before its messages.

    Raises `RequestError` if the question is missing or too long.
    """
    messages_in = [
        InputMessage(ROLES.get(message.role, ""), message.content, f"messages[{i}].content")
        for i, message in enumerate(chat.messages)
    ]
    return request_of(chat, "messages", [*earlier(history), *messages_in], id=id, sampling=_sampling(chat))


def earlier(history: Sequence[turn.Message]) -> list[InputMessage]:
    """Returns the earlier messages, from a kept conversation."""
    return [InputMessage(message.role, message.content, "conversation") for message in history]


def request_of(body: AnswerRequest, param: str, messages_in: Sequence[InputMessage], **fields: Any) -> turn.Request:
    """The request of this body, whose messages are the field `param`. Raises `RequestError` if the question is missing or too long."""
    last = max((i for i, message in enumerate(messages_in) if message.role == "user"), default=None)
    if last is None:
        raise RequestError(f"{param}: there is no question, because no message has the role 'user'.", param=param)
    messages, attached = list[turn.Message](), list[str]()
    for i, message in enumerate(messages_in):
        text = message.text(is_question=i == last)
        if message.role != "system" and (
            last - i > MAX_MESSAGES or (message.role == "user" and i != last and template_of(text))
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
            half = MAX_MESSAGE_CHARS // 2 if i != last and len(text) > MAX_MESSAGE_CHARS else 0
            messages.append(turn.Message(message.role, text[:half] + CUT + text[-half:] if half else text))
    return turn.Request(
        tuple(_recent(messages)),
        body.model,
        filters=body.filters.filters,
        persona=body.persona or "",
        page=body.page or "",
        whole=not body.stream,
        attached=tuple(_within(attached, MAX_ATTACHED_CHARS)),
        **fields,
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


def _within(texts: Sequence[str], room: int) -> Iterator[str]:
    """The texts, cut after so many characters in total."""
    for text in texts:
        if room > 0:
            yield text[:room]
        room -= len(text)


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


def _part(part: MessagePart, param: str, *, is_question: bool) -> str:
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
        stream = bool(chat.stream)
        info.fields.update(model=chat.model, stream=stream)
        assistant = self.service.assistant(access, chat.model)
        configured = self.service.settings.tuning.key_sources.get(access.key, assistant.table.sources)
        sources = "events" if chat.events else configured
        shown = display(request.headers, sources, stream=stream)
        record = AnswerRecord(assistant.id, stream)
        id_ = f"chatcmpl-{new_answer_id(self.service, info)}"
        keeping: Keeping | None = None
        if task := task_of(chat, request.headers):
            record.task = task.key
            shown = Display()
            model, settings = self.service.assistants.model, self.service.settings
            events: AsyncIterator[Event] = run_task(task, chat, assistant, model, settings, record)
        else:
            if chat.trace:
                instead = ", or ask with `docs-assistant ask --trace`"
                self.service.check_admin(request, "Traces aren't shown", instead=instead, param="trace")
            if chat.overrides:
                self.service.check_admin(request, "Settings can't be overridden", param="overrides")
                assistant = assistant.overridden(chat.overrides.overrides)
            language = self.service.reader_language(request, chat.language)
            place = await place_of_chat(self.service, request, access, chat)
            asked = replace(self._asked(chat, info, shown, place.history), trace=bool(chat.trace), language=language)
            keeping = keeping_of(self.service, request, place, record, (id_, asked.question))
            answered = assistant.answer if chat.overrides else partial(self.service.answer, request, assistant)
            events = answered(asked, record)
        info.answer = record
        form = ChatFormat(id_, int(time.time()), assistant.id, chat.include_usage, shown.events, shown.status)
        return Answer(self.service, info, form, events, stream=stream, keeping=keeping)

    def _asked(
        self, chat: ChatRequest, info: RequestInfo, shown: Display, history: Sequence[turn.Message]
    ) -> turn.Request:
        asked = from_chat(chat, info.id, history=history)
        log.debug(LogMessage("question", id=info.id, text=asked.question))
        first = highest_source_number(asked.attached) + 1 if shown.events else 1
        return replace(asked, links=shown.links, first_number=first, early=bool(chat.events))


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
