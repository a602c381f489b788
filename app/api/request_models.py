"""What requests may say, as models; everything else in them is ignored, or refused where ignoring would mislead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from app.core.errors import ECHOED, RequestError
from app.core.filters import Filters

MAX_INT = 2**31 - 1
Name = Annotated[str, Field(max_length=200)]
Place = Annotated[str, Field(max_length=1000)]


class RequestModel(BaseModel):
    """Types as they are in JSON, nothing converted; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ContentPart(RequestModel):
    """A part of a message. Text counts; an image, sound or file is refused in the question and skipped before it."""

    type: Literal["text", "refusal", "image_url", "input_audio", "file"]
    text: str | None = None
    refusal: str | None = None


class ChatMessage(RequestModel):
    """One line of the conversation. `developer` is `system`; what tools said is skipped."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(RequestModel):
    """How a stream is written."""

    include_usage: bool | None = Field(None, description="Send the token counts in a chunk of their own at the end.")


class ResponseFormat(RequestModel):
    """Answers are Markdown with links: JSON can't be asked for."""

    type: Literal["text"]


class SearchFilters(RequestModel):
    """What may be found; a field that is left out or empty doesn't restrict, one that isn't listed here is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    collections: list[Name] = Field(
        default_factory=list, max_length=100, description="Names that pages were indexed under."
    )
    languages: list[Name] = Field(
        default_factory=list, max_length=100, description="Languages of pages.", examples=[["en"]]
    )
    url_prefixes: list[Place] = Field(
        default_factory=list, max_length=100, description="Beginnings of addresses, as of a site."
    )
    sections: list[Place] = Field(
        default_factory=list,
        max_length=100,
        description="Paths on any site, with all below them.",
        examples=[["/docs/storage"]],
    )
    versions: list[Name] = Field(
        default_factory=list,
        max_length=100,
        description="Versions as addresses tell them, or pages say them.",
        examples=[["1.2"]],
    )

    @property
    def filters(self) -> Filters:
        """As the index takes them."""
        return Filters(**{name: tuple(values) for name, values in self})


class ChatRequest(RequestModel):
    """A chat request; the last message of the user is the question. Fields not listed here are ignored."""

    model: Name = Field(description="Name of an assistant, as /v1/models lists them.", examples=["docs-assistant"])
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
    stop: Name | list[Name] | None = Field(None, description="Texts that end the answer; at most four.")
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    response_format: ResponseFormat | None = None
    modalities: list[Literal["text"]] | None = Field(None, description="Answers are text.")
    tools: Any = Field(None, description="Accepted and ignored, as every field that isn't listed here.")
    filters: SearchFilters = Field(default_factory=SearchFilters, description="The answer is from these pages only.")
    persona: Name | None = Field(
        None,
        description="Tone of the answer, as the name of a persona; it wins over one in `model`.",
        examples=["kids"],
    )
    trace: bool | None = Field(None, description="Tell how the answer came about, step by step; needs an admin key.")

    @property
    def include_usage(self) -> bool:
        """True when a stream shall end with its token counts."""
        return bool(self.stream_options and self.stream_options.include_usage)


class InputPart(RequestModel):
    """A part of a message of /v1/responses."""

    type: Literal["input_text", "output_text", "refusal", "input_image", "input_file", "input_audio"]
    text: str | None = None
    refusal: str | None = None


class InputItem(RequestModel):
    """One line of the conversation; items of other types (calls, reasoning) are skipped."""

    type: str | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[InputPart] | None = None


class TextOptions(RequestModel):
    """The form of the answer."""

    format: ResponseFormat | None = None


class ResponsesRequest(RequestModel):
    """A request of the Responses API. Nothing is kept here, so what refers to an earlier response is refused."""

    model: Name = Field(description="Name of an assistant, as /v1/models lists them.", examples=["docs-assistant"])
    input: str | list[InputItem] = Field(min_length=1, examples=["How do I create a volume?"])
    instructions: str | None = Field(None, description="Wishes of style, as a system message.")
    stream: bool | None = Field(default=False, description="Send the answer as it is written.")
    temperature: float | None = Field(None, ge=0, le=2)
    max_output_tokens: int | None = Field(None, ge=1, le=MAX_INT, description="Longest answer, in tokens.")
    text: TextOptions | None = None
    filters: SearchFilters = Field(default_factory=SearchFilters, description="The answer is from these pages only.")
    persona: Name | None = Field(None, description="Tone of the answer, as the name of a persona.", examples=["kids"])
    previous_response_id: None = Field(None, description="Refused: send the whole conversation as `input`.")
    conversation: None = Field(None, description="Refused: send the whole conversation as `input`.")
    background: bool | None = Field(
        None, description="Only false: answers come in this response.", json_schema_extra={"enum": [False, None]}
    )
    metadata: dict[Name, Place] | None = Field(None, max_length=16, description="Given back.")

    @field_validator("background")
    @classmethod
    def _refuse(cls, value: bool | None) -> bool | None:
        if value:
            raise ValueError("there is no answering in the background here")
        return value


class SearchRequest(RequestModel):
    """A search; a field that isn't listed here is refused, since ignoring it would give other passages than wanted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    query: str = Field(examples=["How do I create a volume?"])
    model: Name = Field(default="", description="Assistant whose pages are searched; the first one without it.")
    limit: int | None = Field(None, ge=1, le=50, description="How many passages; DOCS_TOP_K without it.")
    filters: SearchFilters = Field(default_factory=SearchFilters)


class IngestRequest(RequestModel):
    """Which sites to index again."""

    sites: list[str] | None = Field(
        None,
        min_length=1,
        description="Some of the configured sites, as DOCS_SITES and DOCS_SOURCES have them; without it all of them.",
        examples=[["https://docs.example.org/sitemap.xml"]],
    )
    collections: list[Annotated[Name, Field(min_length=1)]] | None = Field(
        None, min_length=1, description="Only the sources of these collections.", examples=[["handbook"]]
    )
    force: bool = Field(
        default=False, description="Publish also when so much of a site is missing that it seems to be at fault."
    )


Body = TypeVar("Body", bound=RequestModel)


def read_chat(body: bytes) -> ChatRequest:
    """The request in this body. Raises `RequestError` naming the first wrong field."""
    return _read(ChatRequest, body)


def read_responses(body: bytes) -> ResponsesRequest:
    """The request in this body. Raises `RequestError` naming the first wrong field."""
    return _read(ResponsesRequest, body)


def read_search(body: bytes) -> SearchRequest:
    """The request in this body. Raises `RequestError` naming the first wrong field."""
    return _read(SearchRequest, body)


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
        param = _param(first["loc"])[:ECHOED]
        raise RequestError(f"{param or 'The body'}: {_reason(param, first['msg'])}.", param=param or None) from error


# pydantic adds the branch of a union to the place of an error; clients know nothing of it
_UNIONS = {
    "input": "must be a string or a list of messages, at least one",
    "content": "must be a string or a list of parts of a known type",
    "stop": "must be a string or a list of strings",
}
_REFUSED = {
    "response_format.type": "only text can be answered here, no JSON",
    "text.format.type": "only text can be answered here, no JSON",
    "previous_response_id": "no responses are kept here; send the whole conversation as input",
    "conversation": "no conversations are kept here; send the whole conversation as input",
    "background": "must be false, there is no answering in the background here",
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
    if param in _REFUSED:
        return _REFUSED[param]
    return _UNIONS.get(param.rpartition(".")[2]) or message[0].lower() + message[1:]
