"""Where a question belongs: its conversation, and what was said before it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.requests import Request

from app.api.access import Access
from app.api.conversations.owners import found, is_shared, owner_of
from app.api.request_models import ChatRequest, ResponsesRequest
from app.api.service import Service
from app.conversations.records import KeptAnswer, conversation_id_of
from app.core.errors import DatabaseError, RequestError, quoted
from app.core.log_message import LogMessage
from app.core.turn import Message

if TYPE_CHECKING:
    from app.conversations.store import ConversationStore

log = logging.getLogger("app.api")

HEADER = "x-conversation-id"
CHAT_HEADERS = ("x-openwebui-chat-id", "x-owui-chat-id")
TEMPORARY = "local:"
"""How Open WebUI begins the ids of chats that its user doesn't want to be kept."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question belongs. `history` is what to put before its messages.

    `makes`: the conversation is made if there is none. `previous` is the answer that it follows outside of conversations.
    """

    owner: str
    kept: bool
    conversation: str = ""
    makes: bool = False
    previous: str = ""
    history: Sequence[Message] = ()


async def place_of_chat(service: Service, request: Request, access: Access, chat: ChatRequest) -> Place:
    """The place of a question of the chat API. Raises `RequestError` for a conversation that its sender doesn't have.

    A client that sends what was said before needs no history of ours.
    """
    owner, store, headers = owner_of(access), service.conversations, request.headers
    id_ = chat.conversation_id or headers.get(HEADER, "")
    if store is None:
        _check_unused("conversation" if chat.conversation_id else HEADER, id_, "messages")
        return Place(owner, kept=False)
    kept = chat.store is not False
    if not id_:
        place = _place_in_open_webui(headers, owner, kept=kept)
        # the id follows from that of the chat, which stands in its address, so it must not give access
        return Place(owner, place.kept) if is_shared(service, request, access) else place
    if sum(message.role in ("user", "assistant") for message in chat.messages) > 1:
        return await _known_place(store, owner, id_, kept=kept)
    turns = found(await store.turns_of(owner, id_), id_)
    return Place(owner, kept, id_, history=_messages(turns))


async def place_of_response(service: Service, access: Access, body: ResponsesRequest) -> Place:
    """The place of a question of the Responses API. Raises `RequestError` as OpenAI does."""
    owner, store = owner_of(access), service.conversations
    id_, previous = body.conversation_id, body.previous_response_id or ""
    if id_ and previous:
        raise RequestError(
            "Mutually exclusive parameters: send only one of 'previous_response_id' and 'conversation'.",
            param="previous_response_id",
            code="mutually_exclusive_parameters",
        )
    if store is None:
        _check_unused("conversation" if id_ else "previous_response_id", id_ or previous, "input")
        return Place(owner, kept=False)
    kept = body.store is not False
    if id_:
        return Place(owner, kept, id_, history=_messages(found(await store.turns_of(owner, id_), id_)))
    if not previous:
        return Place(owner, kept)
    turns = await store.turns_until(owner, previous)
    if turns is None:
        raise RequestError(
            f"Previous response with id {quoted(previous)} not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return Place(owner, kept, previous=previous, history=_messages(turns))


def _check_unused(param: str, value: str, field: str) -> None:
    if value:
        raise RequestError(
            f"{param}: nothing is kept here, because DOCS_RETENTION_DAYS is 0; send the whole conversation as {field}.",
            param=param,
        )


def _place_in_open_webui(headers: Headers, owner: str, *, kept: bool) -> Place:
    """The place of a question of Open WebUI, which sends what was said before, or of one outside of conversations."""
    chat = next((headers[name] for name in CHAT_HEADERS if name in headers), "")
    if not _UUID.fullmatch(chat):  # nothing says that other ids belong to one chat alone
        return Place(owner, kept and not chat.startswith(TEMPORARY))
    return Place(owner, kept, conversation_id_of(owner, chat.lower()), makes=True)


async def _known_place(store: ConversationStore, owner: str, id_: str, *, kept: bool) -> Place:
    try:
        found(await store.conversation(owner, id_), id_)
    except DatabaseError as error:  # the answer doesn't need it; but nothing says whose conversation it is
        log.warning(LogMessage("an answer is not kept", error=error))
        return Place(owner, kept=False)
    return Place(owner, kept, id_)


def _messages(turns: Iterable[KeptAnswer]) -> Sequence[Message]:
    """The conversation so far, without questions that got no answer."""
    return [
        message
        for turn in turns
        if turn.answer
        for message in (Message("user", turn.question), Message("assistant", turn.answer))
    ]
