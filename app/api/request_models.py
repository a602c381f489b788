"""Models of request bodies. Unknown fields are ignored, except where that would give misleading results."""

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
Language = Annotated[
    Name | None,
    Field(
        description="Language of the user, for questions that show none; takes precedence over Accept-Language.",
        examples=["cs"],
    ),
]


class RequestModel(BaseModel):
    """Base of all request models: strict JSON types without conversion; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ContentPart(RequestModel):
    """A part of a message. Images, audio and files are an error in the question and replaced by a placeholder before it."""

    type: Literal["text", "refusal", "image_url", "input_audio", "file"]
    text: str | None = None
    refusal: str | None = None


class ChatMessage(RequestModel):
    """One message of the conversation. `developer` means `system`; messages of tools are skipped."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(RequestModel):
    """Options of a stream."""

    include_usage: bool | None = Field(None, description="Send the token counts in a chunk of their own at the end.")


class ResponseFormat(RequestModel):
    """Answers are Markdown with links; JSON is not supported."""

    type: Literal["text"]


class SearchFilters(RequestModel):
    """Restricts which pages may be found. A missing or empty field doesn't restrict; an unknown field is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    collections: list[Name] = Field(
        default_factory=list, max_length=100, description="Collections that pages are indexed in."
    )
    languages: list[Name] = Field(
        default_factory=list, max_length=100, description="Languages of pages.", examples=[["en"]]
    )
    url_prefixes: list[Place] = Field(
        default_factory=list, max_length=100, description="Prefixes of addresses, for example the address of a site."
    )
    sections: list[Place] = Field(
        default_factory=list,
        max_length=100,
        description="Paths on any site, including everything below them.",
        examples=[["/docs/storage"]],
    )
    versions: list[Name] = Field(
        default_factory=list,
        max_length=100,
        description="Versions found in addresses or stated by pages.",
        examples=[["1.2"]],
    )

    @property
    def filters(self) -> Filters:
        """The filters in the form that the index uses."""
        return Filters(**{name: tuple(values) for name, values in self})


class ChatRequest(RequestModel):
    """A chat request. The last message of the user is the question; unknown fields are ignored."""

    model: Name = Field(description="Name of an assistant, as /v1/models lists them.", examples=["docs-assistant"])
    messages: list[ChatMessage] = Field(
        min_length=1, examples=[[{"role": "user", "content": "How do I create a volume?"}]]
    )
    stream: bool | None = Field(default=False, description="Send the answer as it is written.")
    stream_options: StreamOptions | None = None
    n: int | None = Field(None, ge=1, le=1, description="Only 1 is supported.")
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1, le=MAX_INT, description="Longest answer, in tokens.")
    max_completion_tokens: int | None = Field(
        None, ge=1, le=MAX_INT, description="Newer name of `max_tokens`; takes precedence over it."
    )
    stop: Name | list[Name] | None = Field(None, description="Texts that end the answer; at most four.")
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    response_format: ResponseFormat | None = None
    modalities: list[Literal["text"]] | None = Field(None, description="Answers are text.")
    tools: Any = Field(None, description="Accepted and ignored, like every unknown field.")
    filters: SearchFilters = Field(default_factory=SearchFilters, description="The answer is from these pages only.")
    language: Language = None
    persona: Name | None = Field(
        None,
        description="Name of a persona, which sets the tone of the answer; takes precedence over one in `model`.",
        examples=["kids"],
    )
    trace: bool | None = Field(None, description="Include a step-by-step trace of the answer; requires an admin key.")

    @property
    def include_usage(self) -> bool:
        """True if the stream must end with a chunk of token counts."""
        return bool(self.stream_options and self.stream_options.include_usage)


class InputPart(RequestModel):
    """A part of a message of /v1/responses."""

    type: Literal["input_text", "output_text", "refusal", "input_image", "input_file", "input_audio"]
    text: str | None = None
    refusal: str | None = None


class InputItem(RequestModel):
    """One message of the conversation; items of other types (calls, reasoning) are skipped."""

    type: str | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[InputPart] | None = None


class TextOptions(RequestModel):
    """Options of the text output."""

    format: ResponseFormat | None = None


class ResponsesRequest(RequestModel):
    """A request of the Responses API. Responses aren't stored, so references to earlier responses are an error."""

    model: Name = Field(description="Name of an assistant, as /v1/models lists them.", examples=["docs-assistant"])
    input: str | list[InputItem] = Field(min_length=1, examples=["How do I create a volume?"])
    instructions: str | None = Field(None, description="Instructions on style, like a system message.")
    stream: bool | None = Field(default=False, description="Send the answer as it is written.")
    temperature: float | None = Field(None, ge=0, le=2)
    max_output_tokens: int | None = Field(None, ge=1, le=MAX_INT, description="Longest answer, in tokens.")
    text: TextOptions | None = None
    filters: SearchFilters = Field(default_factory=SearchFilters, description="The answer is from these pages only.")
    language: Language = None
    persona: Name | None = Field(
        None, description="Name of a persona, which sets the tone of the answer.", examples=["kids"]
    )
    previous_response_id: None = Field(None, description="Refused: send the whole conversation as `input`.")
    conversation: None = Field(None, description="Refused: send the whole conversation as `input`.")
    background: bool | None = Field(
        None, description="Only false is supported.", json_schema_extra={"enum": [False, None]}
    )
    metadata: dict[Name, Place] | None = Field(None, max_length=16, description="Returned unchanged.")

    @field_validator("background")
    @classmethod
    def _refuse(cls, value: bool | None) -> bool | None:
        if value:
            raise ValueError("background responses aren't supported")
        return value


class SearchRequest(RequestModel):
    """A search request. Unknown fields are an error, because ignoring one would return unwanted passages."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    query: str = Field(examples=["How do I create a volume?"])
    model: Name = Field(default="", description="Assistant whose pages are searched; the first assistant by default.")
    limit: int | None = Field(None, ge=1, le=50, description="Number of passages; DOCS_TOP_K by default.")
    filters: SearchFilters = Field(default_factory=SearchFilters)
    language: Language = None


class IngestRequest(RequestModel):
    """Which sites to index again."""

    sites: list[str] | None = Field(
        None,
        min_length=1,
        description="Sites to index, as written in DOCS_SITES and DOCS_SOURCES; all of them by default.",
        examples=[["https://docs.example.org/sitemap.xml"]],
    )
    collections: list[Annotated[Name, Field(min_length=1)]] | None = Field(
        None, min_length=1, description="Only the sources of these collections.", examples=[["handbook"]]
    )
    force: bool = Field(
        default=False, description="Publish even if so much of a site is missing that the site seems to be broken."
    )


Body = TypeVar("Body", bound=RequestModel)


def parse(kind: type[Body], body: bytes) -> Body:
    """The body as this model. Raises `RequestError` that names the first invalid field."""
    try:
        return validated(kind, orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise RequestError(f"The body isn't valid JSON: {error}.", code="invalid_json") from error


def validated(kind: type[Body], values: Any, whole: str = "The body") -> Body:
    """The values as this model. Raises `RequestError` that names the first invalid field; `whole` names the values."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        param = _param(first["loc"])[:ECHOED]
        raise RequestError(f"{param or whole}: {_reason(param, first['msg'])}.", param=param or None) from error


# pydantic adds the branch of a union to the location of an error, which means nothing to clients
_UNIONS = {
    "input": "must be a string or a list of messages, at least one",
    "content": "must be a string or a list of parts of a known type",
    "stop": "must be a string or a list of strings",
}
_REFUSED = {
    "response_format.type": "only text is supported, not JSON",
    "text.format.type": "only text is supported, not JSON",
    "previous_response_id": "responses aren't stored; send the whole conversation as input",
    "conversation": "conversations aren't stored; send the whole conversation as input",
    "background": "must be false; background responses aren't supported",
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
