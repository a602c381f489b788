"""Parts of lists, as OpenAI's API has them: `limit`, `order` and `after`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from typing_extensions import TypedDict

from app.conversations.records import Order, Paging
from app.core.errors import RequestError, quoted

NO_STORE = {"cache-control": "no-store"}
MOST = 100


class Ends(TypedDict):
    """The ids of the first and the last entry."""

    first_id: str | None
    last_id: str | None


def paging_of(request: Request) -> Paging:
    """The part of a list that the request wants. Raises `RequestError`."""
    query = request.query_params
    limit, order = query.get("limit", "20"), query.get("order", "desc")
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 9 and 1 <= int(limit) <= MOST):
        raise RequestError(f"limit: must be a number from 1 to {MOST}.", param="limit")
    if order not in ("asc", "desc"):
        raise RequestError("order: must be asc or desc.", param="order")
    known: Order = "asc" if order == "asc" else "desc"
    return Paging(query.get("after", "")[:300], int(limit), known)


def unknown_after(paging: Paging) -> RequestError:
    """The error if there is no entry with the id `after`."""
    return RequestError(f"after: there is no entry with the id {quoted(paging.after)} here.", param="after")


def ends(data: Sequence[Mapping[str, Any]], key: str = "id") -> Ends:
    """The ids of the first and the last entry; None for an empty list."""
    return {"first_id": data[0][key] if data else None, "last_id": data[-1][key] if data else None}
