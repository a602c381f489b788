"""Bodies of requests and responses: reads them within limits, parses them as models, writes them as JSON with orjson."""

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar, cast

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Scope

from app.core.errors import ECHOED, LimitReached, Overloaded, RequestError, did_you_mean, quoted
from app.core.packed import UnreadableGzip, unpacked
from app.core.process import give_back_memory
from app.http.door import is_own_machine, network


def prefers(media: str, accept: str) -> bool:
    """True if the Accept header lists this type and doesn't prefer HTML. Browsers list neither text/markdown nor application/json."""
    weights = _weights(accept)
    weight = weights.get(media, 0.0)
    return weight > 0 and weight >= max(weights.get("text/html", 0.0), weights.get("application/xhtml+xml", 0.0))


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


class RequestModel(BaseModel):
    """Base of all request models: strict JSON types without conversion; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ExactModel(RequestModel):
    """Base of the request models for which an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


SMALL = 64 * 1024
"""Bytes of a body that aren't counted: honest requests have fewer, so they are read while others fill the memory."""

MAX_BODY = 2_000_000
"""Bytes of a question's body, which brings conversations and files."""

MOST_READ = 64 * 1024 * 1024
"""Bytes beyond `SMALL` of all bodies that are being read."""

MOST_UNFINISHED = 32
"""Bodies of one address that have begun and not ended; a body that comes in one piece is none."""

GIVEN_BACK = 8 * 1024 * 1024
"""Bytes of bodies after which the memory is given back to the system, once no body is being read."""


_CODINGS = frozenset({"identity", "gzip", "x-gzip"})
"""Values of Content-Encoding that are read."""


def _too_long(limit: int) -> RequestError:
    return RequestError(f"The request has over {limit} bytes, which is more than the limit.", code="too_long")


def _unzipped(body: bytes, limit: int) -> bytes:
    try:
        content, whole = unpacked(body, limit)
    except UnreadableGzip as error:
        raise RequestError(f"The body isn't gzip, as its content-encoding says: {error}.") from error
    if not whole:
        raise RequestError("The body is gzip without its end.")
    if len(content) > limit:
        raise _too_long(limit)
    return content


class Bodies:
    """Reads the bodies of all requests within one budget of memory, and within places for each address."""

    def __init__(self, most: int = MOST_READ, unfinished: int = MOST_UNFINISHED) -> None:
        self._most, self._unfinished = most, unfinished
        self._counted = self._freed = 0
        self._of_address: Counter[str] = Counter()

    async def read(self, request: Request, limit: int) -> bytes:
        """The body, unpacked. Raises `RequestError` with the code `too_long` as soon as it is known to exceed `limit` bytes, or
        `unknown_encoding` where it is packed, but not with gzip; `LimitReached` if the address has too many unfinished bodies,
        and `Overloaded` if those of all fill the budget.
        """
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise _too_long(limit)
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding not in _CODINGS:
            raise RequestError(
                f"The body has the content-encoding {quoted(coding)}. Send it as it is, or with gzip.",
                code="unknown_encoding",
            )
        body = await self._received(request, limit)
        return body if coding == "identity" else _unzipped(body, limit)

    async def _received(self, request: Request, limit: int) -> bytes:
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
