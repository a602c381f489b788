"""Converts the messages of a request into a `turn.Request`: question, history, attachments and sampling options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.api.openwebui.display import unwrap_question
from app.api.openwebui.tasks import is_task
from app.api.request_models import ChatMessage, ChatRequest, ContentPart, InputItem, InputPart, ResponsesRequest
from app.core import turn
from app.core.errors import RequestError

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


@dataclass(frozen=True, slots=True)
class InputMessage:
    """A message of the chat API or the Responses API; `param` is its path in the request."""

    role: str
    content: str | Sequence[ContentPart | InputPart] | None
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


def from_chat(
    chat: ChatRequest,
    id: str,  # noqa: A002  # as Request names it
    *,
    max_question: int,
    history: Sequence[turn.Message] = (),
) -> turn.Request:
    """The request for an assistant; `history` comes before its messages.

    Raises `RequestError` if the question is missing or too long.
    """
    messages_in = [_chat_message(message, i) for i, message in enumerate(chat.messages)]
    request = _request([*_earlier(history), *messages_in], "messages", max_question)
    return _with_fields(replace(request, id=id, sampling=_sampling(chat)), chat)


def from_responses(
    body: ResponsesRequest,
    id: str,  # noqa: A002
    *,
    max_question: int,
    history: Sequence[turn.Message] = (),
) -> turn.Request:
    """The same as `from_chat` for a request of the Responses API."""
    given = body.input
    messages_in = [InputMessage("system", body.instructions, "instructions")] if body.instructions else []
    messages_in += _earlier(history)
    if isinstance(given, str):
        messages_in.append(InputMessage("user", given, "input"))
    else:
        messages_in += [_input_item(item, i) for i, item in enumerate(given)]
    request = _request(messages_in, "input", max_question)
    return _with_fields(replace(request, id=id, sampling=turn.Sampling(body.temperature, body.max_output_tokens)), body)


def _earlier(history: Sequence[turn.Message]) -> list[InputMessage]:
    return [InputMessage(message.role, message.content, "conversation") for message in history]


def _with_fields(request: turn.Request, body: ChatRequest | ResponsesRequest) -> turn.Request:
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


def _input_item(item: InputItem, index: int) -> InputMessage:
    role = ROLES.get(item.role or "", "") if item.type in (None, "message") else ""
    return InputMessage(role, item.content if role else "", f"input[{index}].content")


def _request(messages_in: Sequence[InputMessage], param: str, max_question: int) -> turn.Request:
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
            _check_question(text.strip(), message.param, max_question)
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


def _check_question(question: str, param: str, longest: int) -> None:
    if not question:
        raise RequestError(f"{param}: the question is empty.", param=param)
    if len(question) > longest:
        raise RequestError(
            f"The question has {len(question)} characters, but at most {longest} are allowed. Shorten it.",
            param=param,
            code="too_long",
        )


def _sampling(chat: ChatRequest) -> turn.Sampling:
    stop = (chat.stop,) if isinstance(chat.stop, str) else tuple(chat.stop or ())
    if len(stop) > 4:
        raise RequestError(f"stop: {len(stop)} texts are given, but at most four are allowed.", param="stop")
    return turn.Sampling(chat.temperature, chat.max_completion_tokens or chat.max_tokens, stop, chat.seed)


def _part(part: ContentPart | InputPart, param: str, *, is_question: bool) -> str:
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
