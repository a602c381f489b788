"""Ratings of kept answers with their list for operators, and links by which others read an answer without a key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field, WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.conversations.records import Feedback, Order, Paging
from app.core.errors import RequestError, quoted
from app.core.turn import Unsupported, Verbatim
from app.http.bodies import JsonResponse, Name, RequestModel, filled, unstored
from app.routes.admin.queries import QueryModel
from app.routes.answer_models import Sources
from app.routes.description import ERRORS, body_of, refusals
from app.routes.html_pages import root_url
from app.routes.keeping import store_of
from app.routes.metrics import Metrics
from app.routes.routers import operator_router, router_of
from app.routes.service import Service

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


class Ends(TypedDict):
    """The ids of the first and the last entry."""

    first_id: str | None
    last_id: str | None


class ListPart(Ends):
    """A part of a list."""

    object: Literal["list"]
    has_more: bool


class FeedbackList(ListPart):
    """A part of the list of feedback."""

    data: list[GivenFeedback]


FAILURES = ERRORS | refusals({
    403: "Nothing is kept, because DOCS_RETENTION_DAYS is 0.", 404: "The key has nothing of this id.",
    503: "The database can't be reached.",
})  # fmt: skip
GONE = refusals({404: "The link is wrong, has expired, or the answer was deleted.", "default": "Any other error."})
TAG = "Conversations"


class PagingQuery(QueryModel):
    """A part of a list."""

    after: Name = Field("", description="Id of the last entry before.")
    limit: int = Field(20, ge=1, le=MOST)
    order: Order = "desc"

    @property
    def paging(self) -> Paging:
        """The part in the form that the store uses."""
        return Paging(self.after, self.limit, self.order)


class FeedbackQuery(PagingQuery):
    """Ratings that are wanted."""

    since: Annotated[datetime | None, WithJsonSchema({"type": "string"})] = Field(
        None, description="ISO 8601 time, or seconds since 1970."
    )
    rating: Literal["up", "down"] | None = None


def unknown_after(paging: Paging) -> RequestError:
    """The error if there is no entry with the id `after`."""
    return RequestError(f"after: there is no entry with the id {quoted(paging.after)} here.", param="after")


def ends(data: Sequence[Mapping[str, Any]], key: str = "id") -> Ends:
    """The ids of the first and the last entry; None for an empty list."""
    return {"first_id": data[0][key] if data else None, "last_id": data[-1][key] if data else None}


DAY = 86_400
DISABLED, UNSHARED = "feedback_disabled", "sharing_disabled"


class AnswerLink(TypedDict):
    """A link to an answer. Nobody can take it back before its time but by deleting the answer."""

    object: Literal["answer.link"]
    token: Annotated[str, Field(description="As /v1/shared/{token} reads it.")]
    url: Annotated[str, Field(description="The page that shows the answer.")]
    until: Annotated[int, Field(description="Until when the link works, in seconds since 1970.")]


class SharedAnswer(TypedDict):
    """A question and its answer, without who asked."""

    object: Literal["answer.shared"]
    question: str
    answer: Annotated[str, Field(description="Markdown.")]
    sources: Sources
    unsupported: Annotated[Sequence[Unsupported], Field(description="What no passage proves of the text.")]
    verbatim: Verbatim | None
    assistant: str
    language: str
    created_at: int
    until: int


@dataclass(frozen=True)
class AnswerRoutes:
    """The handlers of the routes."""

    service: Service
    metrics: Metrics

    async def give(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """The feedback, which replaces an earlier one on the same answer, except a comment that isn't given again."""
        owner = self.service.access(request).owner
        store = store_of(self.service, DISABLED)
        given = await self.service.read(request, FeedbackRequest)
        kept = await store.rate(owner, id, given.rating, given.comment)
        if kept is None:
            raise _no_answer(id, "rated")
        self.metrics.feedback(kept.answer.assistant, given.rating)
        return JsonResponse(FeedbackObject(object="feedback", answer=id, rating=given.rating, comment=kept.comment))

    async def take_back(self, request: Request, id: str) -> Response:  # noqa: A002
        """Delete the feedback on an answer."""
        owner = self.service.access(request).owner
        if not await store_of(self.service, DISABLED).unrate(owner, id):
            raise _no_answer(id, "rated")
        return JsonResponse(Deleted(id=id, object="feedback.deleted", deleted=True))

    async def list_all(self, query: Annotated[FeedbackQuery, Query()]) -> Response:
        """A part of the feedback of all readers, the newest first."""
        store = store_of(self.service, DISABLED)
        paging, since = query.paging, query.since
        begin = (since if since.tzinfo else since.replace(tzinfo=UTC)).timestamp() if since else 0.0
        if (some := await store.feedback(paging, since=begin, rating=query.rating or "")) is None:
            raise unknown_after(paging)
        data = [_given(one) for one in some.data]
        body: FeedbackList = {"object": "list", "data": data, "has_more": some.has_more, **ends(data, "answer")}
        return unstored(body)

    async def share(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """A link to an answer of the key."""
        owner, store = self.service.access(request).owner, store_of(self.service, UNSHARED)
        if not (days := self.service.share_days):
            raise RequestError(
                "Answers aren't shared here: DOCS_TUNING__SHARE_DAYS sets for how many days links work.", code=UNSHARED
            )
        made = await store.link_to(owner, id, store.clock() + days * DAY, store.days * DAY)
        if made is None:
            raise _no_answer(id, "shared")
        token, until = made
        url = f"{root_url(request)}/?shared={token}"
        return JsonResponse(AnswerLink(object="answer.link", token=token, url=url, until=until))

    async def shared(self, token: str) -> Response:
        """The answer. A link that is wrong, has expired, or is of a deleted answer has the same error."""
        store = self.service.conversations
        found = await store.linked(token) if store and self.service.share_days else None
        if store is None or found is None or found[1] <= store.clock():
            raise RequestError(
                "There is no answer behind this link: it is incomplete, has expired, or the answer was deleted.",
                code="link_not_found",
            )
        one, until = found
        told = {"created_at": int(one.created), "until": until}
        response = unstored(filled(SharedAnswer, one, object="answer.shared", **told))
        response.headers["x-robots-tag"] = "noindex"
        return response


def _no_answer(id_: str, done: str) -> RequestError:
    """The error for an id of no answer that the sender has, which can't be `done` so."""
    return RequestError(
        f"There is no answer {quoted(id_)} that can be {done}: it wasn't kept, is older than DOCS_RETENTION_DAYS, or belongs to"
        " another key.",
        code="answer_not_found",
    )


def _given(one: Feedback) -> GivenFeedback:
    answer, created = one.answer, int(one.created)
    about = {"answer": answer.id, "rating": one.rating, "comment": one.comment, "created_at": created}
    return filled(GivenFeedback, answer, object="feedback", text=answer.answer, **about)


def routers(service: Service, metrics: Metrics) -> Sequence[APIRouter]:
    """The routes of readers and of operators; without a store, each says that nothing is kept."""
    if service.conversations:
        service.conversations.writer.on_lost = metrics.not_kept
    kept, path = AnswerRoutes(service, metrics), "/v1/answers/{id}/feedback"
    readers = router_of(TAG, (
        ("feedback", "POST", path, kept.give, "Rate an answer", FeedbackObject, FAILURES, body_of(FeedbackRequest)),
        ("feedback_delete", "DELETE", path, kept.take_back, "Take the rating of an answer back", Deleted, FAILURES, {}),
        ("answer_link", "POST", "/v1/answers/{id}/link", kept.share, "Make a link to an answer", AnswerLink, FAILURES, {}),
        ("shared_answer", "GET", "/v1/shared/{token}", kept.shared, "Read an answer by its link", SharedAnswer, GONE, {"access": {}}),
    ))  # fmt: skip
    summary = "List ratings with their questions and answers"
    return readers, operator_router(service, [("GET", "feedback", kept.list_all, summary, FeedbackList, None, {})])
