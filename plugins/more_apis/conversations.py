"""Routes of conversations and kept responses; their lists come in parts, as in OpenAI's API."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies import JsonResponse
from app.api.description import body_of
from app.api.feedback import PAGING, Deleted, described, ends, paging_of, unknown_after
from app.api.keeping import Place, check_listing, found, owner_of, store_of
from app.api.service import Service
from app.conversations.records import Conversation, KeptAnswer, Order, Paging
from app.core.errors import RequestError, quoted
from plugins.more_apis.objects import (
    ConversationItem,
    ConversationList,
    ConversationObject,
    ConversationRequest,
    ItemList,
    ResponseObject,
    ResponsesRequest,
)
from plugins.more_apis.responses import ResponsesFormat, part

NO_STORE = {"cache-control": "no-store"}
MOST = 100


ASKED = "_in"
"""The end of the id of a question; without it, it is that of the answer."""


@dataclass(frozen=True)
class Conversations:
    """The handlers of the routes."""

    service: Service

    async def create(self, request: Request) -> Response:
        """A new conversation."""
        owner = owner_of(self.service.access(request))
        body = await self.service.read(request, ConversationRequest, default=b"{}")
        conversation = await store_of(self.service).create(owner, body.title or "", body.metadata or {})
        return JsonResponse(_object(conversation))

    async def list_all(self, request: Request) -> Response:
        """A part of the conversations of the key, the newest first."""
        access = self.service.access(request)
        store = store_of(self.service)
        check_listing(self.service, request, access)
        paging = paging_of(request)
        if (some := await store.conversations(owner_of(access), paging)) is None:
            raise unknown_after(paging)
        data = [_object(conversation) for conversation in some.data]
        body: ConversationList = {"object": "list", "data": data, "has_more": some.has_more, **ends(data)}
        return JsonResponse(body, headers=NO_STORE)

    async def get(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """One conversation."""
        owner = owner_of(self.service.access(request))
        conversation = found(await store_of(self.service).conversation(owner, id), id)
        return JsonResponse(_object(conversation), headers=NO_STORE)

    async def change(self, request: Request, id: str) -> Response:  # noqa: A002
        """The conversation with another title or other metadata."""
        owner = owner_of(self.service.access(request))
        body = await self.service.read(request, ConversationRequest, default=b"{}")
        changed = await store_of(self.service).change(owner, id, title=body.title, metadata=body.metadata)
        return JsonResponse(_object(found(changed, id)))

    async def delete(self, request: Request, id: str) -> Response:  # noqa: A002
        """Delete a conversation with its answers and their feedback."""
        owner = owner_of(self.service.access(request))
        found(await store_of(self.service).delete(owner, id) or None, id)
        body: Deleted = {"id": id, "object": "conversation.deleted", "deleted": True}
        return JsonResponse(body)

    async def reset(self, request: Request, id: str) -> Response:  # noqa: A002
        """The conversation without its answers."""
        owner = owner_of(self.service.access(request))
        return JsonResponse(_object(found(await store_of(self.service).reset(owner, id), id)))

    async def items(self, request: Request, id: str) -> Response:  # noqa: A002
        """A part of the questions and answers, the newest first."""
        owner = owner_of(self.service.access(request))
        store, paging = store_of(self.service), paging_of(request)
        found(await store.conversation(owner, id), id)
        number = await self._number(owner, id, paging)
        some = await store.answers_of(id, Paging(limit=paging.limit // 2 + 2, order=paging.order), number=number)
        items = [item for answer in some.data for item in _items(answer, paging.order)]
        if paging.after:
            items = items[[item["id"] for item in items].index(paging.after) + 1 :]
        data = items[: paging.limit]
        more = some.has_more or len(items) > paging.limit
        body: ItemList = {"object": "list", "data": data, "has_more": more, **ends(data)}
        return JsonResponse(body, headers=NO_STORE)

    async def _number(self, owner: str, conversation: str, paging: Paging) -> int | None:
        """The number of the answer that the item `after` belongs to; None without one."""
        if not paging.after:
            return None
        name = paging.after.removeprefix("msg_").removesuffix(ASKED)
        for form in ("chatcmpl", "resp"):
            answer = await store_of(self.service).answer(
                owner, f"{form}_{name}" if form == "resp" else f"{form}-{name}"
            )
            if answer and answer.conversation == conversation:
                return answer.number
        raise unknown_after(paging)


def _object(one: Conversation) -> ConversationObject:
    return {
        "id": one.id,
        "object": "conversation",
        "created_at": int(one.created),
        "title": one.title,
        "metadata": one.metadata,
    }


def item_id(answer: str) -> str:
    """The id of the message with the answer, which is `msg_…` for `resp_…` and `chatcmpl-…`."""
    return f"msg_{answer.removeprefix('resp_').removeprefix('chatcmpl-')}"


def _items(one: KeptAnswer, order: Order) -> list[ConversationItem]:
    """A question and its answer, in this order."""
    name = item_id(one.id)
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


@dataclass(frozen=True)
class StoredResponses:
    """The handlers of the routes."""

    service: Service

    async def get(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """The response, without its usage, which isn't kept."""
        owner = owner_of(self.service.access(request))
        answer = await store_of(self.service).answer(owner, id) if id.startswith(PREFIX) else None
        if answer is None:
            raise _not_found(id)
        return JsonResponse(_response(answer), headers=NO_STORE)

    async def delete(self, request: Request, id: str) -> Response:  # noqa: A002
        """Delete a response and its feedback."""
        owner, store = owner_of(self.service.access(request)), store_of(self.service)
        if not (id.startswith(PREFIX) and await store.delete_answer(owner, id)):
            raise _not_found(id)
        body: Deleted = {"id": id, "object": "response", "deleted": True}
        return JsonResponse(body)


def _not_found(id_: str) -> RequestError:
    return RequestError(f"Response with id {quoted(id_)} not found.", param="response_id", code="response_not_found")


def _response(answer: KeptAnswer) -> ResponseObject:
    place = Place(answer.owner, kept=True, conversation=answer.conversation, previous=answer.previous)
    asked = ResponsesRequest.model_validate({"model": answer.assistant, "input": answer.question})
    form = ResponsesFormat(answer.id.removeprefix(PREFIX), int(answer.created), answer.assistant, asked, place)
    ended = answer.outcome not in ("failed", "cancelled")
    body = form.response("completed" if ended else "failed", [form.item([part(answer.answer, answer.sources)])])
    body["sources"] = answer.sources
    return body


_CREATE = described(
    "conversation_create", "Begin a conversation", ConversationObject, body_of(ConversationRequest, required=False)
)
_LIST = described("conversations", "List the conversations of the key", ConversationList, {"parameters": PAGING})
_GET = described("conversation", "One conversation", ConversationObject, {})
_CHANGE = described(
    "conversation_change",
    "Change title or metadata",
    ConversationObject,
    body_of(ConversationRequest, required=False),
)
_DELETE = described("conversation_delete", "Delete a conversation, its answers and their feedback", Deleted, {})
_RESET = described("conversation_reset", "Forget what was said in a conversation", ConversationObject, {})
_ITEMS = described("conversation_items", "Questions and answers of a conversation", ItemList, {"parameters": PAGING})
_RESPONSE = described("response", "A kept response", ResponseObject, {})
_RESPONSE_DELETE = described("response_delete", "Delete a kept response", Deleted, {})


def add_to(app: FastAPI, service: Service) -> None:
    """Add the routes; without a store, each says that nothing is kept."""
    conversations = Conversations(service)
    responses = StoredResponses(service)
    path_of_one = "/v1/conversations/{id}"
    for method, path, handler, told in (
        ("POST", "/v1/conversations", conversations.create, _CREATE),
        ("GET", "/v1/conversations", conversations.list_all, _LIST),
        ("GET", path_of_one, conversations.get, _GET),
        ("POST", path_of_one, conversations.change, _CHANGE),
        ("DELETE", path_of_one, conversations.delete, _DELETE),
        ("POST", f"{path_of_one}/reset", conversations.reset, _RESET),
        ("GET", f"{path_of_one}/items", conversations.items, _ITEMS),
        ("GET", "/v1/responses/{id}", responses.get, _RESPONSE),
        ("DELETE", "/v1/responses/{id}", responses.delete, _RESPONSE_DELETE),
    ):
        app.add_api_route(path, handler, methods=[method], **told)
