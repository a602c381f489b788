"""A question to the chat API as a value: who asks, what, how the answer is shown, and where it is kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from starlette.requests import Request

from app.core import turn
from app.core.errors import RequestError
from app.core.log_message import LogMessage
from app.core.turn import AnswerRecord, Events
from app.http.door import info_of
from app.http.keys import Access
from app.routes.keeping import Place, place_of_chat
from app.routes.request_models import MAX_QUESTION, AnswerRequest, ChatRequest, MessagePart
from app.routes.service import Service
from app.text.invisible import visible

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

log = logging.getLogger("app.http")

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


Unwrap = Callable[[str], tuple[str, Sequence[str]] | None]
"""What a user wrote of a text, and what is attached to it; None for a text of the client's own, such as a task."""


def as_written(text: str) -> tuple[str, Sequence[str]]:
    """The whole text, without attachments."""
    return text, ()


def from_chat(
    chat: ChatRequest,
    id: str,  # noqa: A002
    *,
    history: Sequence[turn.Message] = (),
    unwrap: Unwrap = as_written,
) -> turn.Request:
    """The request for an assistant; `history` comes before its messages.

    Raises `RequestError` if the question is missing or too long.
    """
    messages_in = [
        InputMessage(ROLES.get(message.role, ""), message.content, f"messages[{i}].content")
        for i, message in enumerate(chat.messages)
    ]
    return request_of(chat, "messages", [*earlier(history), *messages_in], unwrap, id=id, sampling=_sampling(chat))


def earlier(history: Sequence[turn.Message]) -> list[InputMessage]:
    """Returns the earlier messages, from a kept conversation."""
    return [InputMessage(message.role, message.content, "conversation") for message in history]


def request_of(
    body: AnswerRequest, param: str, messages_in: Sequence[InputMessage], unwrap: Unwrap, **fields: Any
) -> turn.Request:
    """The request of this body, whose messages are the field `param`. Raises `RequestError` if the question is missing or too long."""
    last = max((i for i, message in enumerate(messages_in) if message.role == "user"), default=None)
    if last is None:
        raise RequestError(f"{param}: there is no question, because no message has the role 'user'.", param=param)
    messages, attached = list[turn.Message](), list[str]()
    for i, message in enumerate(messages_in):
        text = message.text(is_question=i == last)
        written = unwrap(text) if message.role != "assistant" else (text, ())
        if message.role != "system" and (
            last - i > MAX_MESSAGES or (written is None and message.role == "user" and i != last)
        ):
            continue  # too old, or a task of the client, which is no part of the conversation
        own, more = written or (text, ())
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


@dataclass(frozen=True, slots=True)
class Display:
    """Things that a client receives besides the text: status lines, sources as events, sources as links in the text."""

    status: bool = False
    events: bool = False
    links: bool = True


class Task(Protocol):
    """What a client asks for that is no question to the documentation, such as a title."""

    @property
    def key(self) -> str:
        """The name of the task."""

    def run(self, record: AnswerRecord) -> Events:
        """The reply as events; a call of the model is added to the record."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Who asks (the owner of the `place`, and `reader` as the client calls its user), what, how the answer is shown, and where it is kept.

    `cached`: a kept answer to the same question may be given.
    """

    assistant: Assistant
    what: turn.Request | Task
    display: Display
    place: Place
    stream: bool = False
    include_usage: bool = False
    cached: bool = True
    reader: str = ""


async def ask_of(  # noqa: PLR0913
    service: Service,
    request: Request,
    access: Access,
    chat: ChatRequest,
    display: Display,
    *,
    place: Place,
    unwrap: Unwrap = as_written,
) -> Ask:
    """The question of a request of the chat API; `place` is that of a question that names no conversation.

    Raises `RequestError` for what only operators may ask for, and for an invalid question or conversation.
    """
    assistant = service.assistant(access, chat.model)
    if chat.trace:
        instead = ", or ask with `docs-assistant ask --trace`"
        service.check_admin(request, "Traces aren't shown", instead=instead, param="trace")
    if chat.overrides:
        service.check_admin(request, "Settings can't be overridden", param="overrides")
        assistant = assistant.overridden(chat.overrides.overrides)
    language = service.reader_language(request, chat.language)
    place = await place_of_chat(service, request, chat, place)
    question = from_chat(chat, info_of(request).id, history=place.history, unwrap=unwrap)
    log.debug(LogMessage("question", id=question.id, text=question.question))
    question = replace(
        question, trace=bool(chat.trace), language=language, links=display.links, early=bool(chat.events)
    )
    cached, stream = not chat.overrides, bool(chat.stream)
    return Ask(assistant, question, display, place, stream, chat.include_usage, cached)
