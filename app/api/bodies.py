"""Bodies of requests and responses: reads them within a limit, writes them as JSON with orjson."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import RequestError


async def read_body(request: Request, limit: int) -> bytes:
    """The body. Raises `RequestError` with the code `too_long` as soon as it is known to exceed `limit` bytes."""
    too_long = RequestError(f"The request has over {limit} bytes, which is more than the limit.", code="too_long")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_long
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise too_long
    return bytes(body)


class JsonResponse(Response):
    """A response with a JSON body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The content as JSON."""
        return orjson.dumps(content)


def encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate, which some models write and JSON in UTF-8 can't contain."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
