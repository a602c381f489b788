"""From what clients send to what the assistants are asked: the question, what stands before it, and how to sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.api.openwebui.display import unwrapped
from app.api.openwebui.tasks import is_task
from app.api.wire import ChatMessage, ChatRequest, ContentPart, InputItem, InputPart, ResponsesRequest
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
MOST_MESSAGES = 50  # of a conversation are read, the last ones
LONGEST_MESSAGE = 4_000  # characters of an earlier one: its beginning and its end
MOST_EARLIER = 32_000  # characters of all earlier ones
MOST_ATTACHED = 200_000  # characters: more than a model's window takes
CUT = "\n…\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One message of any of the APIs; `param` is its place in the request."""

    role: str
    content: str | Sequence[ContentPart | InputPart] | None
    param: str

    def text(self, *, asked: bool) -> str:
        """What it says; `asked` tells that it is the question. Raises `RequestError` where something is missing."""
        if self.content is None and self.role in ("system", "user"):
            raise RequestError(f"{self.param}: is missing.", param=self.param)
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(_part(part, f"{self.param}[{i}]", asked=asked) for i, part in enumerate(self.content))


def to_request(chat: ChatRequest, id: str, *, max_question: int) -> turn.Request:  # noqa: A002  # as Request names it
    """What an assistant is asked. Raises `RequestError` where there is no question, or one that is too long."""
    lines = [_line(message, i) for i, message in enumerate(chat.messages)]
    request = _request(lines, "messages", max_question)
    return replace(
        request,
        assistant=chat.model,
        id=id,
        sampling=_sampling(chat),
        filters=chat.filters.filters,
        persona=chat.persona or "",
        whole=not chat.stream,
    )


def from_responses(body: ResponsesRequest, id: str, *, max_question: int) -> turn.Request:  # noqa: A002
    """As `to_request`, for a request of the Responses API."""
    given = body.input
    lines = [Line("system", body.instructions, "instructions")] if body.instructions else []
    if isinstance(given, str):
        lines.append(Line("user", given, "input"))
    else:
        lines += [_item(item, i) for i, item in enumerate(given)]
    request = _request(lines, "input", max_question)
    return replace(
        request,
        assistant=body.model,
        id=id,
        sampling=turn.Sampling(body.temperature, body.max_output_tokens),
        filters=body.filters.filters,
        persona=body.persona or "",
        whole=not body.stream,
    )


def _line(message: ChatMessage, index: int) -> Line:
    return Line(ROLES.get(message.role, ""), message.content, f"messages[{index}].content")


def _item(item: InputItem, index: int) -> Line:
    role = ROLES.get(item.role or "", "") if item.type in (None, "message") else ""
    return Line(role, item.content if role else "", f"input[{index}].content")


def _request(lines: Sequence[Line], param: str, max_question: int) -> turn.Request:
    last = max((i for i, line in enumerate(lines) if line.role == "user"), default=None)
    if last is None:
        raise RequestError(f"{param}: there is none of the role 'user', so no question.", param=param)
    messages, attached = list[turn.Message](), list[str]()
    for i, line in enumerate(lines):
        text = line.text(asked=i == last)
        if line.role != "system" and (
            last - i > MOST_MESSAGES or (line.role == "user" and i != last and is_task(text))
        ):
            continue  # long ago; or the client asked for a title or the like, and nobody said that
        if line.role != "assistant":
            own, more = unwrapped(text)
            if own or i != last:  # another template may put the question elsewhere: then all of it is the question
                text = own
                attached += more if i == last or line.role == "system" else ()
        if i == last:
            _check_question(text.strip(), line.param, max_question)
        if line.role and text.strip():
            messages.append(turn.Message(line.role, text if i == last else _shortened(text)))
    return turn.Request(tuple(_last_ones(messages)), attached=tuple(_first_ones(attached)))


def _shortened(text: str) -> str:
    """An earlier message as it is read: of a long one beginning and end."""
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE // 2] + CUT + text[-LONGEST_MESSAGE // 2 :]


def _last_ones(messages: Sequence[turn.Message]) -> list[turn.Message]:
    """The question, which has its own limit, and as many of the other messages as are read, the nearest to it."""
    question = max(i for i, message in enumerate(messages) if message.role == "user")
    room, kept = MOST_EARLIER, list[turn.Message]()
    for i, message in sorted(enumerate(messages), reverse=True):
        room -= len(message.content) if i != question else 0
        if room >= 0:
            kept.append(message)
    return kept[::-1]


def _first_ones(attached: Sequence[str]) -> list[str]:
    """The attached material, cut where it is more than any model reads."""
    room, kept = MOST_ATTACHED, list[str]()
    for text in attached:
        kept += [text[:room]] if room > 0 else []
        room -= len(text)
    return kept


def _check_question(question: str, param: str, longest: int) -> None:
    if not question:
        raise RequestError(f"{param}: the question is empty.", param=param)
    if len(question) > longest:
        raise RequestError(
            f"The question has {len(question)} characters, at most {longest} are taken. Shorten it.",
            param=param,
            code="too_long",
        )


def _sampling(chat: ChatRequest) -> turn.Sampling:
    stop = (chat.stop,) if isinstance(chat.stop, str) else tuple(chat.stop or ())
    if len(stop) > 4:
        raise RequestError(f"stop: {len(stop)} texts are given, at most four are taken.", param="stop")
    return turn.Sampling(chat.temperature, chat.max_completion_tokens or chat.max_tokens, stop, chat.seed)


def _part(part: ContentPart | InputPart, param: str, *, asked: bool) -> str:
    if placeholder := PLACEHOLDERS.get(part.type):
        if asked:
            raise RequestError(
                f"This assistant reads text only: say in words what {placeholder} in the question shows ({param}).",
                param=param,
                code="unsupported_content",
            )
        return placeholder
    name = "refusal" if part.type == "refusal" else "text"
    text = part.refusal if name == "refusal" else part.text
    if text is None:
        raise RequestError(f"{param}.{name}: is missing.", param=f"{param}.{name}")
    return text
