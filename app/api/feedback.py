"""POST /v1/answers/{id}/feedback and the list of feedback for operators; lists come in parts, as in OpenAI's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.api.answer_models import Sources
from app.api.bodies import JsonResponse
from app.api.description import ADMIN, ADMIN_ERRORS, ERRORS, body_of, described, refusals
from app.api.keeping import owner_of, store_of
from app.api.metrics import Metrics
from app.api.request_models import RequestModel
from app.api.service import Service
from app.conversations.records import Feedback, Order, Paging
from app.core.errors import RequestError, quoted

NO_STORE = {"cache-control": "no-store"}
MOST = 100


class FeedbackRequest(RequestModel):
    """Opinion of the reader about an answer."""

    rating: Literal["up", "down"]
    comment: str | None = Field(None, max_length=2000, description="Without it, an earlier comment stays.")


class Deleted(TypedDict):
    """Object that was deleted."""

    id: str
    object: Literal["conversation.deleted", "response", "feedback.deleted"]
    deleted: bool


class FeedbackObject(TypedDict):
    """Feedback on an answer."""

    object: Literal["feedback"]
    answer: str
    rating: Literal["up", "down"]
    comment: str


class GivenFeedback(TypedDict):
    """Feedback with the answer that it is about, for operators."""

    object: Literal["feedback"]
    answer: str
    rating: str
    comment: str
    created_at: int
    question: str
    text: str
    sources: Sources
    assistant: str
    language: str
    outcome: str
    generation: int | None


class FeedbackList(TypedDict):
    """A part of the list of feedback."""

    object: Literal["list"]
    data: list[GivenFeedback]
    first_id: str | None
    last_id: str | None
    has_more: bool


FAILURES = ERRORS | refusals(
    {
        403: "Nothing is kept, because DOCS_RETENTION_DAYS is 0.",
        404: "The key has nothing of this id.",
        503: "The database can't be reached.",
    }
)
TAG = "Conversations"
PAGING: list[dict[str, Any]] = [
    {"name": "after", "in": "query", "schema": {"type": "string"}, "description": "Id of the last entry before."},
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}},
    {"name": "order", "in": "query", "schema": {"type": "string", "enum": ["asc", "desc"], "default": "desc"}},
]
FEEDBACK_FILTERS: list[dict[str, Any]] = [
    {
        "name": "since",
        "in": "query",
        "schema": {"type": "string"},
        "description": "ISO 8601 time, or seconds since 1970.",
    },
    {"name": "rating", "in": "query", "schema": {"type": "string", "enum": ["up", "down"]}},
]


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


_GIVE = described("Rate an answer", FeedbackObject, FAILURES, name="feedback", tag=TAG, **body_of(FeedbackRequest))
_TAKE_BACK = described("Take the rating of an answer back", Deleted, FAILURES, name="feedback_delete", tag=TAG)
_LIST = described(
    "List ratings with their questions and answers",
    FeedbackList,
    FAILURES | ADMIN_ERRORS,
    name="feedback_list",
    access=ADMIN,
    parameters=[*PAGING, *FEEDBACK_FILTERS],
)

DISABLED = "feedback_disabled"


@dataclass(frozen=True)
class FeedbackRoutes:
    """The handlers of the routes."""

    service: Service
    metrics: Metrics

    async def give(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """The feedback, which replaces an earlier one on the same answer, except a comment that isn't given again."""
        owner = owner_of(self.service.access(request))
        store = store_of(self.service, DISABLED)
        given = await self.service.read(request, FeedbackRequest)
        kept = await store.rate(owner, id, given.rating, given.comment)
        if kept is None:
            raise _no_answer(id)
        self.metrics.feedback(kept.answer.assistant, given.rating)
        body: FeedbackObject = {
            "object": "feedback",
            "answer": id,
            "rating": given.rating,
            "comment": kept.comment,
        }
        return JsonResponse(body)

    async def take_back(self, request: Request, id: str) -> Response:  # noqa: A002
        """Delete the feedback on an answer."""
        owner = owner_of(self.service.access(request))
        if not await store_of(self.service, DISABLED).unrate(owner, id):
            raise _no_answer(id)
        body: Deleted = {"id": id, "object": "feedback.deleted", "deleted": True}
        return JsonResponse(body)

    async def list_all(self, request: Request) -> Response:
        """A part of the feedback of all readers, the newest first."""
        self.service.check_admin(request, "Feedback isn't shown")
        store, paging = store_of(self.service, DISABLED), paging_of(request)
        rating = request.query_params.get("rating", "")
        if rating not in ("", "up", "down"):
            raise RequestError("rating: must be up or down.", param="rating")
        since = _since(request.query_params.get("since", ""))
        if (some := await store.feedback(paging, since=since, rating=rating)) is None:
            raise unknown_after(paging)
        data = [_given(one) for one in some.data]
        body: FeedbackList = {"object": "list", "data": data, "has_more": some.has_more, **ends(data, "answer")}
        return JsonResponse(body, headers=NO_STORE)


def _no_answer(id_: str) -> RequestError:
    return RequestError(
        f"There is no answer {quoted(id_)} that can be rated: it wasn't kept, is older than DOCS_RETENTION_DAYS, or belongs to"
        " another key.",
        code="answer_not_found",
    )


def _since(value: str) -> float:
    """Seconds since 1970 of a number or an ISO 8601 time. Raises `RequestError`."""
    if not value:
        return 0.0
    if value.isascii() and value.isdecimal() and len(value) <= 12:
        return float(value)
    try:
        then = datetime.fromisoformat(value)
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise RequestError(
            f"since: {quoted(value)} isn't a time such as 2026-01-31, 2026-01-31T12:00Z or 1769860800.", param="since"
        ) from error


def _given(one: Feedback) -> GivenFeedback:
    answer = one.answer
    return {
        "object": "feedback",
        "answer": answer.id,
        "rating": one.rating,
        "comment": one.comment,
        "created_at": int(one.created),
        "question": answer.question,
        "text": answer.answer,
        "sources": answer.sources,
        "assistant": answer.assistant,
        "language": answer.language,
        "outcome": answer.outcome,
        "generation": answer.generation,
    }


def add_to(app: FastAPI, service: Service, metrics: Metrics) -> None:
    """Add the routes; without a store, each says that nothing is kept."""
    if service.conversations:
        service.conversations.writer.on_lost = metrics.not_kept
    feedback = FeedbackRoutes(service, metrics)
    for method, path, handler, told in (
        ("POST", "/v1/answers/{id}/feedback", feedback.give, _GIVE),
        ("DELETE", "/v1/answers/{id}/feedback", feedback.take_back, _TAKE_BACK),
        ("GET", "/v1/admin/feedback", feedback.list_all, _LIST),
    ):
        app.add_api_route(path, handler, methods=[method], **told)
