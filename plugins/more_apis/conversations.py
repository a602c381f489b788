"""Routes of conversations and kept responses; their lists come in parts, as in OpenAI's API."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Query
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies import JsonResponse, unstored
from app.api.description import add_routes, body_of
from app.api.feedback import FAILURES, TAG, Deleted, PagingQuery, ends, unknown_after
from app.api.keeping import Place, check_listing, found, store_of
from app.api.service import Service
from app.conversations.records import Conversation, KeptAnswer, Order, Paging
from app.core.errors import RequestError, quoted
from plugins.more_apis.responses import (
    ConversationItem,
    ConversationList,
    ConversationObject,
    ConversationRequest,
    ItemList,
    ResponseObject,
    ResponsesFormat,
    ResponsesRequest,
    part,
)

ASKED = "_in"
"""The end of the id of a question; without it, it is that of the answer."""


@dataclass(frozen=True)
class Conversations:
    """The handlers of the routes."""

    service: Service

    async def create(self, request: Request) -> Response:
        """A new conversation."""
        owner = self.service.access(request).owner
        body = await self.service.read(request, ConversationRequest, default=b"{}")
        made = await store_of(self.service).create(owner, body.title or "", body.metadata or {})
        return JsonResponse(_object(made))

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

    async def change(self, request: Request, id: str) -> Response:  # noqa: A002
        """The conversation with another title or other metadata."""
        owner = self.service.access(request).owner
        body = await self.service.read(request, ConversationRequest, default=b"{}")
        changed = await store_of(self.service).change(owner, id, title=body.title, metadata=body.metadata)
        return JsonResponse(_object(found(changed, id)))

    async def delete(self, request: Request, id: str) -> Response:  # noqa: A002
        """Delete a conversation with its answers and their feedback."""
        owner = self.service.access(request).owner
        found(await store_of(self.service).delete(owner, id) or None, id)
        return JsonResponse(Deleted(id=id, object="conversation.deleted", deleted=True))

    async def reset(self, request: Request, id: str) -> Response:  # noqa: A002
        """The conversation without its answers."""
        owner = self.service.access(request).owner
        return JsonResponse(_object(found(await store_of(self.service).reset(owner, id), id)))

    async def items(self, request: Request, id: str, query: Annotated[PagingQuery, Query()]) -> Response:  # noqa: A002
        """A part of the questions and answers, the newest first."""
        owner = self.service.access(request).owner
        store, paging = store_of(self.service), query.paging
        found(await store.conversation(owner, id), id)
        number = await self._number(owner, id, paging)
        some = await store.answers_of(id, Paging(limit=paging.limit // 2 + 2, order=paging.order), number=number)
        items = [item for one in some.data for item in _items(one, paging.order)]
        if paging.after:
            items = items[[item["id"] for item in items].index(paging.after) + 1 :]
        data = items[: paging.limit]
        more = some.has_more or len(items) > paging.limit
        body: ItemList = {"object": "list", "data": data, "has_more": more, **ends(data)}
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

    async def _number(self, owner: str, conversation: str, paging: Paging) -> int | None:
        """The number of the answer that the item `after` belongs to; None without one."""
        if not paging.after:
            return None
        name = paging.after.removeprefix("msg_").removesuffix(ASKED)
        for form in ("chatcmpl", "resp"):
            one = await store_of(self.service).answer(owner, f"{form}_{name}" if form == "resp" else f"{form}-{name}")
            if one and one.conversation == conversation:
                return one.number
        raise unknown_after(paging)


def _object(one: Conversation) -> ConversationObject:
    return {
        "id": one.id,
        "object": "conversation",
        "created_at": int(one.created),
        "title": one.title,
        "metadata": one.metadata,
    }


def _items(one: KeptAnswer, order: Order) -> list[ConversationItem]:
    """A question and its answer, in this order."""
    name = f"msg_{one.id.removeprefix('resp_').removeprefix('chatcmpl-')}"
    asked: ConversationItem = {
        "id": f"{name}{ASKED}",
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": one.question}],
        "created_at": int(one.created),
    }
    answered: ConversationItem = {
        "id": name,
        "type": "message",
        "status": "incomplete" if one.outcome in ("failed", "cancelled") else "completed",
        "role": "assistant",
        "content": [part(one.answer, one.sources)],
        "answer": one.id,
        "created_at": int(one.created),
        "sources": one.sources,
        "rating": one.rating,
    }
    return [asked, answered] if order == "asc" else [answered, asked]


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


def add_to(app: FastAPI, service: Service) -> None:
    """Add the routes; without a store, each says that nothing is kept."""
    conversations = Conversations(service)
    all_, one, kept = "/v1/conversations", "/v1/conversations/{id}", "/v1/responses/{id}"
    begun = body_of(ConversationRequest, required=False)
    add_routes(app, TAG, (
        ("conversation_create", "POST", all_, conversations.create, "Begin a conversation", ConversationObject, FAILURES, begun),
        ("conversations", "GET", all_, conversations.list_all, "List the conversations of the key", ConversationList, FAILURES, {}),
        ("conversation", "GET", one, conversations.get, "Read one conversation", ConversationObject, FAILURES, {}),
        ("conversation_change", "POST", one, conversations.change, "Change title or metadata", ConversationObject, FAILURES, begun),
        ("conversation_delete", "DELETE", one, conversations.delete, "Delete a conversation, its answers and their feedback", Deleted,
         FAILURES, {}),
        ("conversation_reset", "POST", f"{one}/reset", conversations.reset, "Forget what was said in a conversation", ConversationObject,
         FAILURES, {}),
        ("conversation_items", "GET", f"{one}/items", conversations.items, "List questions and answers", ItemList, FAILURES, {}),
    ))  # fmt: skip
    add_routes(app, "OpenAI API", (
        ("response", "GET", kept, conversations.get_response, "Read a kept response", ResponseObject, FAILURES, {}),
        ("response_delete", "DELETE", kept, conversations.delete_response, "Delete a kept response", Deleted, FAILURES, {}),
    ))  # fmt: skip
