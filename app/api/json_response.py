"""JSON by orjson."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response


class Json(Response):
    """A JSON body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The content as JSON."""
        return orjson.dumps(content)


def json_text(text: str) -> bytes:
    """A JSON string; half a surrogate pair, which some models write, becomes a question mark."""
    try:
        return orjson.dumps(text)
    except TypeError:
        return orjson.dumps(text.encode("utf-8", "replace").decode())
