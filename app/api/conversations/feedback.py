"""POST and DELETE /v1/answers/{id}/feedback, and GET /v1/admin/feedback for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies import JsonResponse
from app.api.conversations.objects import Deleted, FeedbackList, FeedbackObject, FeedbackRequest, GivenFeedback
from app.api.conversations.owners import owner_of, store_of
from app.api.conversations.paging import NO_STORE, ends, paging_of, unknown_after
from app.api.service import Service
from app.conversations.records import Feedback
from app.core.errors import RequestError, quoted
from app.watch.metrics import Metrics

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
