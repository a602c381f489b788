"""Bodies of requests and responses: reads them within limits, parses them as models, writes them as JSON with orjson."""

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeVar, cast

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Scope

from app.api.middleware.door import is_own_machine, network
from app.core.errors import ECHOED, LimitReached, Overloaded, RequestError, did_you_mean, quoted
from app.core.process import give_back_memory
from app.core.types import Filters
from app.pipeline.recording import Overrides


def prefers_markdown(accept: str) -> bool:
    """True if the Accept header lists text/markdown and doesn't prefer HTML. Browsers never list it."""
    weights = _weights(accept)
    markdown = weights.get("text/markdown", 0.0)
    return markdown > 0 and markdown >= max(weights.get("text/html", 0.0), weights.get("application/xhtml+xml", 0.0))


def preferred_language(accepted: str, languages: Collection[str]) -> str:
    """The one of these languages that Accept-Language prefers; empty if it accepts none of them."""
    weights = _weights(accepted)
    known = [tag for tag, weight in weights.items() if weight and primary(tag) in languages]
    return primary(max(known, key=lambda tag: weights[tag], default=""))


def named_language(tag: str, languages: Collection[str]) -> str:
    """The language that a request names. Raises `RequestError` if it isn't one of these."""
    if primary(tag) not in languages:
        raise RequestError(
            f"language: {quoted(tag)} isn't configured here. Configured are: {', '.join(languages)}.", param="language"
        )
    return primary(tag)


def primary(tag: str) -> str:
    """The language of a tag such as cs-CZ or cs_CZ."""
    return re.split("[-_]", tag.strip().lower(), maxsplit=1)[0]


def _weights(header: str) -> dict[str, float]:
    """The lower-case values of an Accept header with their quality (q)."""
    weights = {}
    for item in header.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        q = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
        weights[name] = float(q) if re.fullmatch(r"[01](\.\d{0,3})?", q) else 0.0
    return weights


MAX_INT = 2**31 - 1
Name = Annotated[str, Field(max_length=200)]
Place = Annotated[str, Field(max_length=1000)]
Names = Annotated[list[Name], Field(max_length=100)]
Places = Annotated[list[Place], Field(max_length=100)]
LANGUAGE_SAID = "Language of the user, for questions that show none; takes precedence over Accept-Language."
Language = Annotated[Name | None, Field(description=LANGUAGE_SAID, examples=["cs"])]
PageAddress = Annotated[
    str | None,
    Field(
        max_length=2000,
        pattern=r"^(https?://[^\s/]+(/\S*)?)?$",
        description="Address of the page that the reader looks at: pages near it rank a little higher.",
        examples=["https://docs.example.org/guide/volumes"],
    ),
]


class RequestModel(BaseModel):
    """Base of all request models: strict JSON types without conversion; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ExactModel(RequestModel):
    """Base of the request models for which an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class MessagePart(RequestModel):
    """A part of a message. Images, audio and files are an error in the question and replaced by a placeholder before it."""

    type: str
    text: str | None = None
    refusal: str | None = None


class ContentPart(MessagePart):
    """A part of a message of the chat API."""

    type: Literal["text", "refusal", "image_url", "input_audio", "file"]


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


class SearchFilters(ExactModel):
    """Restricts which pages may be found. A missing or empty field doesn't restrict; an unknown field is an error."""

    collections: Names = Field(default=[], description="Collections that pages are indexed in.")
    languages: Names = Field(default=[], description="Languages of pages.", examples=[["en"]])
    url_prefixes: Places = Field(default=[], description="Prefixes of addresses, for example the address of a site.")
    sections: Places = Field(
        default=[], description="Paths on any site, including everything below them.", examples=[["/docs/storage"]]
    )
    versions: Names = Field(
        default=[], description="Versions found in addresses or stated by pages.", examples=[["1.2"]]
    )

    @property
    def filters(self) -> Filters:
        """The filters in the form that the index uses."""
        return Filters(**{name: tuple(values) for name, values in self})


class OverridesBody(ExactModel):
    """Other settings and prompts for this answer alone; an unknown field is an error."""

    top_k: int | None = Field(None, ge=1, le=50, description="As DOCS_TOP_K.")
    per_page: int | None = Field(None, ge=1, le=50, description="As DOCS_TUNING__PER_PAGE.")
    vector_weight: float | None = Field(
        None, ge=0, le=1, description="As DOCS_TUNING__VECTOR_WEIGHT, for every language."
    )
    fusion: Literal["weighted", "rrf"] | None = Field(None, description="As DOCS_TUNING__FUSION.")
    min_evidence: float | None = Field(None, ge=0, le=1, description="As DOCS_MIN_EVIDENCE.")
    temperature: float | None = Field(None, ge=0, le=2, description="As DOCS_TUNING__TEMPERATURE.")
    prompts: dict[Name, Annotated[str, Field(max_length=100_000)]] | Name = Field(
        default_factory=dict,
        description="Texts by file, for every language or one; or `shipped`, for the prompts of the package.",
        examples=[{"en/synthesize.md": "Answer from these passages:\n\n$passages"}],
    )

    @property
    def overrides(self) -> Overrides:
        """The overrides in the form that assistants use."""
        given = {name: value for name, value in self if value is not None and name != "prompts"}
        if self.vector_weight is not None:
            given["vector_weight"] = {"*": self.vector_weight}
        return Overrides(given, self.prompts)


class ConversationReference(RequestModel):
    """A conversation, as OpenAI's API also writes it."""

    id: Name


class AnswerRequest(RequestModel):
    """The fields of a question that all APIs have."""

    model: Name = Field(description="Name of an assistant, as /v1/models lists them.", examples=["docs-assistant"])
    stream: bool | None = Field(default=False, description="Send the answer as it is written.")
    temperature: float | None = Field(None, ge=0, le=2)
    filters: SearchFilters = Field(default_factory=SearchFilters, description="The answer is from these pages only.")
    language: Language = None
    persona: Name | None = Field(
        None,
        description="Name of a persona, which sets the tone of the answer; takes precedence over one in `model`.",
        examples=["kids"],
    )
    page: PageAddress = None
    conversation: Name | ConversationReference | None = Field(
        None, description="Id of a conversation of /v1/conversations, which this question and its answer join."
    )
    store: bool | None = Field(None, description="With false, the question and the answer aren't kept.")

    @property
    def conversation_id(self) -> str:
        """The id of its conversation; empty without one."""
        given = self.conversation
        return given.id if isinstance(given, ConversationReference) else given or ""


class ChatRequest(AnswerRequest):
    """A chat request. The last message of the user is the question; unknown fields are ignored."""

    messages: list[ChatMessage] = Field(
        min_length=1, examples=[[{"role": "user", "content": "How do I create a volume?"}]]
    )
    stream_options: StreamOptions | None = None
    n: int | None = Field(None, ge=1, le=1, description="Only 1 is supported.")
    max_tokens: int | None = Field(None, ge=1, le=MAX_INT, description="Longest answer, in tokens.")
    max_completion_tokens: int | None = Field(
        None, ge=1, le=MAX_INT, description="Newer name of `max_tokens`; takes precedence over it."
    )
    stop: Name | list[Name] | None = Field(None, description="Texts that end the answer; at most four.")
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    response_format: ResponseFormat | None = None
    modalities: list[Literal["text"]] | None = Field(None, description="Answers are text.")
    tools: Any = Field(None, description="Accepted and ignored, like every unknown field.")
    events: bool | None = Field(
        None,
        description="Stream status lines as events, as Open WebUI gets them. Sources are in the last chunk; the text has no list of them.",
    )
    trace: bool | None = Field(None, description="Include a trace of the answer; requires an admin key.")
    overrides: OverridesBody | None = Field(
        None, description="Other settings and prompts for this answer alone; requires an admin key."
    )

    @property
    def include_usage(self) -> bool:
        """True if the stream must end with a chunk of token counts."""
        return bool(self.stream_options and self.stream_options.include_usage)


class SearchRequest(ExactModel):
    """A search request. Unknown fields are an error, because ignoring one would return unwanted passages."""

    query: str = Field(examples=["How do I create a volume?"])
    model: Name = Field(default="", description="Assistant whose pages are searched; the first assistant by default.")
    limit: int | None = Field(None, ge=1, le=50, description="Number of passages; DOCS_TOP_K by default.")
    filters: SearchFilters = Field(default_factory=SearchFilters)
    language: Language = None
    page: PageAddress = None
    as_you_type: bool = Field(
        default=False,
        description="The query is being typed: its last word may be incomplete, rows are sections, and the client's language decides.",
    )


class QuestionRequest(ExactModel):
    """A question for the question set; an unknown field is an error."""

    question: str = Field(min_length=1, max_length=2000, examples=["How do I create a volume?"])
    language: Name = Field(min_length=1, description="Language of the question.", examples=["en"])
    answerable: bool = Field(default=True, description="False if the documentation has no answer; then without pages.")
    pages: list[Place] = Field(
        [], max_length=20, description="Addresses of pages or sections that answer it, best first."
    )
    evidence: str | None = Field(None, max_length=2000, description="The sentence of the first page that proves it.")
    answer: str | None = Field(None, max_length=2000, description="The right answer in short.")
    model: Name = Field(default="", description="Assistant whose index has the pages; the first one by default.")


class IngestRequest(ExactModel):
    """Sites to index again. Unknown fields are an error, because ignoring one would index everything."""

    sites: list[str] | None = Field(
        None,
        min_length=1,
        description="Sites to index, as written in DOCS_SITES and DOCS_SOURCES or recorded with the index; by default all of "
        "the settings, or without any those of the index.",
        examples=[["https://docs.example.org/sitemap.xml"]],
    )
    collections: list[Annotated[Name, Field(min_length=1)]] | None = Field(
        None, min_length=1, description="Only the sources of these collections.", examples=[["handbook"]]
    )
    force: bool = Field(
        default=False, description="Publish even if so much of a site is missing that the site seems to be broken."
    )


class RollbackRequest(ExactModel):
    """Generation that becomes live again. Unknown fields are an error."""

    index: Name | None = Field(
        None, description="Name of an [[index]], empty for that of DOCS_STORE; the first assistant's by default."
    )
    generation: int = Field(
        description="The generation before the live one. Another number is an error, so that a request sent twice goes back once."
    )


SMALL = 64 * 1024
"""Bytes of a body that aren't counted: honest requests have fewer, so they are read while others fill the memory."""

MAX_BODY = 2_000_000
"""Bytes of a question's body, which brings conversations and files."""

MAX_QUESTION = 20_000
"""Characters of a question."""

MOST_READ = 64 * 1024 * 1024
"""Bytes beyond `SMALL` of all bodies that are being read."""

MOST_UNFINISHED = 32
"""Bodies of one address that have begun and not ended; a body that comes in one piece is none."""

GIVEN_BACK = 8 * 1024 * 1024
"""Bytes of bodies after which the memory is given back to the system, once no body is being read."""


def _too_long(limit: int) -> RequestError:
    return RequestError(f"The request has over {limit} bytes, which is more than the limit.", code="too_long")


class Bodies:
    """Reads the bodies of all requests within one budget of memory, and within places for each address."""

    def __init__(self, most: int = MOST_READ, unfinished: int = MOST_UNFINISHED) -> None:
        self._most, self._unfinished = most, unfinished
        self._counted = self._freed = 0
        self._of_address: Counter[str] = Counter()

    async def read(self, request: Request, limit: int) -> bytes:
        """The body. Raises `RequestError` with the code `too_long` as soon as it is known to exceed `limit` bytes,
        `LimitReached` if the address has too many unfinished bodies, and `Overloaded` if those of all fill the budget.
        """
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise _too_long(limit)
        message = await request.receive()
        if not message.get("more_body") and message["type"] == "http.request":
            body = bytes(message["body"])
            if len(body) > limit:
                raise _too_long(limit)
            return body
        with self._place(request.scope):
            return await self._rest(request, message, limit)

    async def _rest(self, request: Request, message: Message, limit: int) -> bytes:
        body, counted = bytearray(), 0
        try:
            while True:
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
                if len(body) > limit:
                    raise _too_long(limit)
                more = max(0, len(body) - SMALL) - counted
                if self._counted + more > self._most:
                    raise Overloaded(f"bodies that are being read have {self._counted} bytes")
                counted += more
                self._counted += more
                if not message.get("more_body"):
                    return bytes(body)
                message = await request.receive()
        finally:
            self._free(counted)

    def _free(self, counted: int) -> None:
        self._counted -= counted
        self._freed += counted
        if not self._counted and self._freed > GIVEN_BACK:
            self._freed = 0
            # after the frames of the requests are gone, and in a thread, because it takes milliseconds
            loop = asyncio.get_running_loop()
            loop.call_later(1, loop.run_in_executor, None, give_back_memory)

    @contextmanager
    def _place(self, scope: Scope) -> Iterator[None]:
        """A place for an unfinished body; the addresses of this machine are those of many clients behind a proxy."""
        address = "" if is_own_machine(scope) else network(scope)
        if address and self._of_address[address] >= self._unfinished:
            raise LimitReached(
                f"Your address has {self._unfinished} requests whose bodies haven't ended. End them first.",
                retry_after=5,
            )
        self._of_address[address] += 1
        try:
            yield
        finally:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]


class JsonResponse(Response):
    """A response with a JSON body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The content as JSON."""
        return orjson.dumps(content)


def unstored(body: Any, status: int = 200) -> JsonResponse:
    """The response with this JSON, which no cache keeps."""
    return JsonResponse(body, status, {"cache-control": "no-store"})


def encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate, which some models write and JSON in UTF-8 can't contain."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


Filled = TypeVar("Filled")


def filled(kind: type[Filled], *sources: object, **values: Any) -> Filled:
    """A body of this kind: these values, and of its other fields those that a source has as attributes."""
    names = kind.__annotations__
    known = {name: getattr(source, name) for source in sources for name in names if hasattr(source, name)}
    return cast("Filled", known | values)


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
        raise field_error(
            error.errors(include_url=False, include_context=False)[0], kind.model_fields, whole
        ) from error


def field_error(first: Mapping[str, Any], known: Collection[str], whole: str) -> RequestError:
    """The error for what pydantic says of a field; `known` are those that there are."""
    param = _param(first["loc"])[:ECHOED]
    if first["type"] == "extra_forbidden":
        near = "" if "." in param else did_you_mean(param, known)
        return RequestError(f"{param}: there is no such field.{near}", param=param)
    return RequestError(f"{param or whole}: {_reason(param, first['msg'])}.", param=param or None)


# pydantic adds the branch of a union to the location of an error, which means nothing to clients
_UNIONS = {
    "input": "must be a string or a list of messages, at least one",
    "content": "must be a string or a list of parts of a known type",
    "stop": "must be a string or a list of strings",
    "prompts": "must be the texts of prompts by file, or 'shipped'",
    "conversation": "must be the id of a conversation, or an object with it",
}
_REFUSED = {
    "response_format.type": "only text is supported, not JSON",
    "text.format.type": "only text is supported, not JSON",
    "page": "must be the address of a page, such as https://docs.example.org/guide/volumes",
    "since": "must be a time such as 2026-01-31, 2026-01-31T12:00Z or 1769860800",
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
