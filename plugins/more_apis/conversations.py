"""Routes of conversations, with their questions and answers, and of kept responses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.conversations.records import Conversation, KeptAnswer
from app.core.errors import RequestError, quoted
from app.http.bodies import JsonResponse, unstored
from app.routes.answer_models import Sources
from app.routes.feedback import FAILURES, TAG, Deleted, ListPart, PagingQuery, ends, unknown_after
from app.routes.keeping import Place, check_listing, found, store_of
from app.routes.routers import router_of
from app.routes.service import Service
from plugins.more_apis.responses import ResponseObject, ResponsesFormat, ResponsesRequest, part


class ConversationObject(TypedDict):
    """A conversation."""

    id: str
    object: Literal["conversation"]
    created_at: int
    title: Annotated[str, Field(description="The first question.")]


class ConversationList(ListPart):
    """A part of the list of conversations."""

    data: list[ConversationObject]


class KeptAnswerObject(TypedDict):
    """A question with its answer; the id is that of the answer, for feedback."""

    id: str
    object: Literal["answer"]
    created_at: int
    question: str
    text: str
    status: Literal["completed", "incomplete"]
    sources: Sources
    rating: Annotated[str, Field(description="up, down, or empty.")]


class KeptAnswerList(ListPart):
    """A part of the questions and answers of a conversation."""

    data: list[KeptAnswerObject]


@dataclass(frozen=True)
class Conversations:
    """The handlers of the routes."""

    service: Service

    async def create(self, request: Request) -> Response:
        """A new conversation."""
        owner = self.service.access(request).owner
        return JsonResponse(_object(await store_of(self.service).create(owner)))

    async def list_all(self, request: Request, query: Annotated[PagingQuery, Query()]) -> Response:
        """A part of the conversations of the key, the newest first."""
        access = self.service.access(request)
        store = store_of(self.service)
        check_listing(self.service, request, access)
        paging = query.paging
        if (some := await store.conversations(access.owner, paging)) is None:
            raise unknown_after(paging)
        data = [_object(one) for one in some.data]
        body: ConversationList = {"object": "list", "data": data, "has_more": some.has_more, **ends(data)}
        return unstored(body)

    async def get(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """One conversation."""
        owner = self.service.access(request).owner
        one = found(await store_of(self.service).conversation(owner, id), id)
        return unstored(_object(one))

    async def delete(self, request: Request, id: str) -> Response:  # noqa: A002
        """Delete a conversation with its answers and their feedback."""
        owner = self.service.access(request).owner
        found(await store_of(self.service).delete(owner, id) or None, id)
        return JsonResponse(Deleted(id=id, object="conversation.deleted", deleted=True))

    async def reset(self, request: Request, id: str) -> Response:  # noqa: A002
        """The conversation without its answers."""
        owner = self.service.access(request).owner
        return JsonResponse(_object(found(await store_of(self.service).reset(owner, id), id)))

    async def answers(self, request: Request, id: str, query: Annotated[PagingQuery, Query()]) -> Response:  # noqa: A002
        """A part of the questions and answers, the newest first."""
        owner, paging = self.service.access(request).owner, query.paging
        store = store_of(self.service)
        found(await store.conversation(owner, id), id)
        if (some := await store.answers_of(id, paging)) is None:
            raise unknown_after(paging)
        data = [_answer(one) for one in some.data]
        body: KeptAnswerList = {"object": "list", "data": data, "has_more": some.has_more, **ends(data)}
        return unstored(body)

    async def get_response(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """The response, without its usage, which isn't kept."""
        owner = self.service.access(request).owner
        answer = await store_of(self.service).answer(owner, id) if id.startswith(PREFIX) else None
        if answer is None:
            raise _not_found(id)
        return unstored(_response(answer))

    async def delete_response(self, request: Request, id: str) -> Response:  # noqa: A002
        """Delete a response and its feedback."""
        owner, store = self.service.access(request).owner, store_of(self.service)
        if not (id.startswith(PREFIX) and await store.delete_answer(owner, id)):
            raise _not_found(id)
        return JsonResponse(Deleted(id=id, object="response", deleted=True))


def _object(one: Conversation) -> ConversationObject:
    return {
        "id": one.id,
        "object": "conversation",
        "created_at": int(one.created),
        "title": one.title,
    }


def _answer(one: KeptAnswer) -> KeptAnswerObject:
    return {
        "id": one.id,
        "object": "answer",
        "created_at": int(one.created),
        "question": one.question,
        "text": one.answer,
        "status": "incomplete" if one.outcome in ("failed", "cancelled") else "completed",
        "sources": one.sources,
        "rating": one.rating,
    }


PREFIX = "resp_"


def _not_found(id_: str) -> RequestError:
    return RequestError(f"Response with id {quoted(id_)} not found.", param="response_id", code="response_not_found")


def _response(answer: KeptAnswer) -> dict[str, Any]:
    place = Place(answer.owner, kept=True, conversation=answer.conversation, previous=answer.previous)
    asked = ResponsesRequest.model_validate({"model": answer.assistant, "input": answer.question})
    form = ResponsesFormat(answer.id.removeprefix(PREFIX), int(answer.created), answer.assistant, asked, place)
    ended = answer.outcome not in ("failed", "cancelled")
    body = form.response("completed" if ended else "failed", [form.item([part(answer.answer, answer.sources)])])
    body["sources"] = answer.sources
    return body


def routers(service: Service) -> Sequence[APIRouter]:
    """The routes of conversations and of kept responses; without a store, each says that nothing is kept."""
    conversations = Conversations(service)
    all_, one, kept = "/v1/conversations", "/v1/conversations/{id}", "/v1/responses/{id}"
    return router_of(TAG, (
        ("conversation_create", "POST", all_, conversations.create, "Begin a conversation", ConversationObject, FAILURES, {}),
        ("conversations", "GET", all_, conversations.list_all, "List the conversations of the key", ConversationList, FAILURES, {}),
        ("conversation", "GET", one, conversations.get, "Read one conversation", ConversationObject, FAILURES, {}),
        ("conversation_delete", "DELETE", one, conversations.delete, "Delete a conversation, its answers and their feedback", Deleted,
         FAILURES, {}),
        ("conversation_reset", "POST", f"{one}/reset", conversations.reset, "Forget what was said in a conversation", ConversationObject,
         FAILURES, {}),
        ("conversation_answers", "GET", f"{one}/answers", conversations.answers, "List questions and answers", KeptAnswerList,
         FAILURES, {}),
    )), router_of("OpenAI API", (
        ("response", "GET", kept, conversations.get_response, "Read a kept response", ResponseObject, FAILURES, {}),
        ("response_delete", "DELETE", kept, conversations.delete_response, "Delete a kept response", Deleted, FAILURES, {}),
    ))  # fmt: skip
