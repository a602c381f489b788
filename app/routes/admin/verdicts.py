"""GET /v1/admin/verdicts, POST and DELETE /v1/admin/verdicts/{id}: what editors say of logged answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.conversations.question_log import iso
from app.conversations.records import Given, Verdict
from app.core.errors import RequestError, quoted
from app.http.bodies import ExactModel, Name, Place, filled, unstored
from app.routes.admin.queries import QueryModel
from app.routes.keeping import store_of
from app.routes.runs import operator_of
from app.routes.service import Service

NO_LOG = "no_log"


class VerdictRequest(ExactModel):
    """What an editor says of an answer; an unknown field is an error."""

    verdict: Literal["good", "wrong"]
    reason: str = Field("", max_length=2000, description="Why it is wrong, or what is good about it.")
    pages: list[Place] = Field(
        [],
        max_length=20,
        description="Addresses of pages that answer the question, best first, where the answer's aren't right.",
    )
    answerable: bool = Field(
        default=True, description="False if no page answers the question, so that it is to be refused."
    )


class VerdictsQuery(QueryModel):
    """Verdicts that are wanted."""

    assistant: Name = Field("", description="Only those on answers of this assistant.")


class VerdictBody(TypedDict):
    """A verdict of an editor on an answer, with what the answer was then."""

    id: str
    verdict: Literal["good", "wrong"]
    reason: str
    pages: Annotated[Sequence[str], Field(description="That answer the question, by the editor.")]
    answerable: bool
    by: str
    given_at: str
    asked_at: str
    question: Annotated[str, Field(description="Without what may belong to a person.")]
    answer: Annotated[str, Field(description="The same; empty if it wasn't kept.")]
    language: str
    assistant: str
    outcome: str
    right_pages: Annotated[Sequence[str], Field(description="What a later answer should use.")]
    wrong_pages: Annotated[Sequence[str], Field(description="What mustn't come first in a later answer.")]


class VerdictList(TypedDict):
    """The verdicts, the newest first."""

    object: Literal["list"]
    data: list[VerdictBody]


@dataclass(frozen=True)
class Verdicts:
    """The handlers of the routes."""

    service: Service

    async def list_all(self, query: Annotated[VerdictsQuery, Query()]) -> Response:
        """All verdicts, also on answers that the log has forgotten."""
        found = await store_of(self.service, NO_LOG).all_verdicts(query.assistant)
        return unstored(VerdictList(object="list", data=[verdict_body(one) for one in found]))

    async def give(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """The verdict, which replaces an earlier one on the same answer."""
        by, store = operator_of(self.service, request), store_of(self.service, NO_LOG)
        asked = await self.service.read(request, VerdictRequest)
        if asked.pages and not asked.answerable:
            raise RequestError("pages: a question that no page answers has no pages.", param="pages")
        verdict = await store.judge(id, Given(**asked.model_dump(), by=by))
        if verdict is None:
            raise _gone(id)
        return unstored(verdict_body(verdict))

    async def take_back(self, id: str) -> Response:  # noqa: A002
        """The verdicts that are left."""
        store = store_of(self.service, NO_LOG)
        if not await store.unjudge(id):
            raise _gone(id)
        return await self.list_all(VerdictsQuery(assistant=""))


def verdict_body(one: Verdict) -> VerdictBody:
    """The verdict as operators get it."""
    return filled(VerdictBody, one, given_at=iso(one.created), asked_at=iso(one.asked))


def _gone(id_: str) -> RequestError:
    return RequestError(f"The log has no question {quoted(id_)}, or not any more.", code="answer_not_found")
