"""The OpenAI dialect: what a chat request may say, and how it becomes our `Request`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.core import turn
from app.core.errors import RequestError

MAX_INT = 2**31 - 1
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


class Wire(BaseModel):
    """Types as they are in JSON, nothing converted; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ContentPart(Wire):
    """A part of a message. Text counts; an image, sound or file is refused in the question and skipped before it."""

    type: Literal["text", "refusal", "image_url", "input_audio", "file"]
    text: str | None = None
    refusal: str | None = None


class ChatMessage(Wire):
    """One line of the conversation. `developer` is `system`; what tools said is skipped."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(Wire):
    """How a stream is written."""

    include_usage: bool | None = Field(None, description="Send the token counts in a chunk of their own at the end.")


class ChatRequest(Wire):
    """A chat request; the last message of the user is the question. Fields not listed here are ignored."""

    model: str = Field(description="Name of an assistant, as /v1/models lists them.", examples=["docs-assistant"])
    messages: list[ChatMessage] = Field(
        min_length=1, examples=[[{"role": "user", "content": "How do I create a volume?"}]]
    )
    stream: bool | None = Field(default=False, description="Send the answer as it is written.")
    stream_options: StreamOptions | None = None
    n: int | None = Field(None, ge=1, le=1, description="One answer is all there is.")
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1, le=MAX_INT, description="Longest answer, in tokens.")
    max_completion_tokens: int | None = Field(
        None, ge=1, le=MAX_INT, description="Newer name of `max_tokens`; it wins where both are given."
    )
    stop: str | list[str] | None = Field(None, description="Texts that end the answer; at most four.")
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    tools: Any = Field(None, description="Accepted and ignored.")
    trace: bool | None = Field(None, description="Tell how the answer came about, step by step; needs an admin key.")

    @property
    def include_usage(self) -> bool:
        """True when a stream shall end with its token counts."""
        return bool(self.stream_options and self.stream_options.include_usage)


class IngestRequest(Wire):
    """Which sites to index again."""

    sites: list[str] | None = Field(
        None,
        min_length=1,
        description="Some of the configured sites, as DOCS_SITES and DOCS_SOURCES have them; without it all of them.",
        examples=[["https://docs.example.org/sitemap.xml"]],
    )


Body = TypeVar("Body", bound=Wire)


def read_chat(body: bytes) -> ChatRequest:
    """The request in this body. Raises `RequestError` naming the first wrong field."""
    return _read(ChatRequest, body)


def read_ingest(body: bytes) -> IngestRequest:
    """The request in this body, which may be empty. Raises `RequestError` naming the first wrong field."""
    return _read(IngestRequest, body.strip() or b"{}")


def _read(kind: type[Body], body: bytes) -> Body:
    try:
        return kind.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise RequestError(f"The body is no valid JSON: {error}.", code="invalid_json") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        param = _param(first["loc"])
        raise RequestError(f"{param or 'The body'}: {_reason(param, first['msg'])}.", param=param or None) from error


def to_request(chat: ChatRequest, id: str, *, max_question: int) -> turn.Request:  # noqa: A002  # as Request names it
    """What the assistants are asked. Raises `RequestError` where there is no question, or one that is too long."""
    last = max((i for i, message in enumerate(chat.messages) if message.role == "user"), default=None)
    if last is None:
        raise RequestError("messages: there is none of the role 'user', so no question.", param="messages")
    texts = [_content(message, i, asked=i == last) for i, message in enumerate(chat.messages)]
    question, param = texts[last].strip(), f"messages[{last}].content"
    if not question:
        raise RequestError(f"{param}: the question is empty.", param=param)
    if len(question) > max_question:
        raise RequestError(
            f"{param}: the question has {len(question)} characters, at most {max_question} are taken. Shorten it.",
            param=param,
            code="too_long",
        )
    messages = tuple(
        turn.Message(ROLES[message.role], text)
        for message, text in zip(chat.messages, texts, strict=True)
        if message.role in ROLES and text.strip()
    )
    return turn.Request(messages, chat.model, id, _sampling(chat), whole=not chat.stream)


def _sampling(chat: ChatRequest) -> turn.Sampling:
    stop = (chat.stop,) if isinstance(chat.stop, str) else tuple(chat.stop or ())
    if len(stop) > 4:
        raise RequestError(f"stop: {len(stop)} texts are given, at most four are taken.", param="stop")
    return turn.Sampling(chat.temperature, chat.max_completion_tokens or chat.max_tokens, stop, chat.seed)


def _content(message: ChatMessage, index: int, *, asked: bool) -> str:
    """The text of a message; `asked` tells that it is the question."""
    if isinstance(message.content, list):
        return "\n".join(
            _part(part, f"messages[{index}].content[{j}]", asked=asked) for j, part in enumerate(message.content)
        )
    if message.content is None and message.role in ("system", "developer", "user"):
        raise RequestError(f"messages[{index}].content: is missing.", param=f"messages[{index}].content")
    return message.content or ""


PLACEHOLDERS = {"image_url": "[image]", "input_audio": "[audio]", "file": "[file]"}


def _part(part: ContentPart, param: str, *, asked: bool) -> str:
    if placeholder := PLACEHOLDERS.get(part.type):
        if asked:
            raise RequestError(
                f"{param}: this assistant reads text only; describe what {placeholder} shows in words.",
                param=param,
                code="unsupported_content",
            )
        return placeholder
    text = part.text if part.type == "text" else part.refusal
    if text is None:
        raise RequestError(f"{param}.{part.type}: is missing.", param=f"{param}.{part.type}")
    return text


# pydantic adds the branch of a union to the place of an error; clients know nothing of it
_UNIONS = {
    "content": "must be a string or a list of parts of a known type",
    "stop": "must be a string or a list of strings",
}


def _param(place: Sequence[int | str]) -> str:
    """`messages[0].content` for ("messages", 0, "content", "str")."""
    param = ""
    for i, key in enumerate(place):
        if i and place[i - 1] in _UNIONS:
            break
        param += f"[{key}]" if isinstance(key, int) else f".{key}" if param else key
    return param


def _reason(param: str, message: str) -> str:
    return _UNIONS.get(param.rpartition(".")[2]) or message[0].lower() + message[1:]
