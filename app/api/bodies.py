"""Bodies of requests and responses: reads them within limits, parses them as models, writes them as JSON with orjson."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Scope

from app.api.middleware.proxy_headers import is_own_machine, network
from app.api.request_models import RequestModel
from app.core.errors import ECHOED, LimitReached, Overloaded, RequestError, did_you_mean
from app.core.process import give_back_memory

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
        too_long = RequestError(f"The request has over {limit} bytes, which is more than the limit.", code="too_long")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise too_long
        message = await request.receive()
        if not message.get("more_body") and message["type"] == "http.request":
            body = bytes(message["body"])
            if len(body) > limit:
                raise too_long
            return body
        with self._place(request.scope):
            return await self._rest(request, message, limit, too_long)

    async def _rest(self, request: Request, message: Message, limit: int, too_long: RequestError) -> bytes:
        body, counted = bytearray(), 0
        try:
            while True:
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
                if len(body) > limit:
                    raise too_long
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


def encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate, which some models write and JSON in UTF-8 can't contain."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


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
        if first["type"] == "extra_forbidden":
            near = "" if "." in param else did_you_mean(param, kind.model_fields)
            raise RequestError(f"{param}: there is no such field.{near}", param=param) from error
        raise RequestError(f"{param or whole}: {_reason(param, first['msg'])}.", param=param or None) from error


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
