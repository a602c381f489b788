"""The id of the HTTP request that this task works for."""

from __future__ import annotations

import secrets
from contextvars import ContextVar

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Empty outside a request."""


def upstream_headers() -> dict[str, str]:
    """The header `x-request-id` for a call to another server: the id of the request with a suffix.

    A request makes several calls at the same time, and clients may repeat an id, but vLLM fails when two running requests
    have the same one.
    """
    id_ = REQUEST_ID.get()
    return {"x-request-id": f"{id_}-{secrets.token_hex(4)}"} if id_ else {}
