"""GET and DELETE /v1/responses/{id}: responses that are kept."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies import JsonResponse
from app.api.conversations.objects import Deleted
from app.api.conversations.owners import owner_of, store_of
from app.api.conversations.paging import NO_STORE
from app.api.conversations.place import Place
from app.api.request_models import ResponsesRequest
from app.api.responses.objects import ResponseObject
from app.api.responses.route import ResponsesFormat, part
from app.api.service import Service
from app.conversations.records import KeptAnswer
from app.core.errors import RequestError, quoted

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
