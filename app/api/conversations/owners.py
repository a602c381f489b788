"""Who may see which conversations.

What is asked with a key belongs to that key, and with another key it doesn't exist. Without keys, everything belongs to the
person at this machine. In an open service, through a proxy without a key, and with the public key of a widget, an id that nobody
can guess gives access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from starlette.requests import Request

from app.api.access import Access
from app.api.middleware.keys import is_local
from app.api.service import Service
from app.core.errors import RequestError, quoted

if TYPE_CHECKING:
    from app.conversations.store import ConversationStore

T = TypeVar("T")


def owner_of(access: Access) -> str:
    """The owner of what is asked with this key; empty without a key."""
    return access.owner


def store_of(service: Service, code: str = "conversations_disabled") -> ConversationStore:
    """The store. Raises `RequestError` with this code if nothing is kept."""
    if service.conversations is None:
        raise RequestError("Nothing is kept here: DOCS_RETENTION_DAYS is 0.", code=code)
    return service.conversations


def is_shared(service: Service, request: Request, access: Access) -> bool:
    """Whether all visitors are the same owner."""
    return access.role == "widget" or (not access.owner and (service.settings.open or not is_local(request)))


def check_listing(service: Service, request: Request, access: Access) -> None:
    """Raises `RequestError` if everybody's conversations would be listed."""
    if is_shared(service, request, access):
        raise RequestError(
            "Conversations aren't listed here, because all visitors share them: whoever has the id of a conversation reads it"
            " at /v1/conversations/ID. With a key of DOCS_API_KEYS, its own conversations are listed.",
            code="listing_refused",
        )


def found(conversation: T | None, id_: str) -> T:
    """The conversation. Raises `RequestError` if it is None."""
    if conversation is None:
        raise RequestError(
            f"Conversation with id {quoted(id_)} not found. It may have been deleted, or be older than DOCS_RETENTION_DAYS.",
            param="conversation",
            code="conversation_not_found",
        )
    return conversation
