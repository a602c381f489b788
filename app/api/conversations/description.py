"""What /openapi.json says of the routes of conversations and feedback."""

from __future__ import annotations

from typing import Any

from app.api.conversations.objects import (
    ConversationList,
    ConversationObject,
    Deleted,
    FeedbackList,
    FeedbackObject,
    ItemList,
)
from app.api.description import ADMIN, ADMIN_ERRORS, ERRORS, KEY, body_of, refusal, returned
from app.api.responses.objects import ResponseObject

FAILURES: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    403: refusal("Nothing is kept, because DOCS_RETENTION_DAYS is 0."),
    404: refusal("The key has nothing of this id."),
    503: refusal("The database can't be reached."),
}
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


def _route(name: str, summary: str, model: type[Any], extra: dict[str, Any]) -> dict[str, Any]:
    tag = "OpenAI API" if "response" in name else "Conversations"
    responses = {200: returned(model, f"{summary}."), **FAILURES}
    return {"name": name, "summary": summary, "tags": [tag], "responses": responses, "openapi_extra": {**KEY, **extra}}


CREATE = _route(
    "conversation_create", "Begin a conversation", ConversationObject, body_of("ConversationRequest", required=False)
)
LIST = _route("conversations", "List the conversations of the key", ConversationList, {"parameters": PAGING})
GET = _route("conversation", "One conversation", ConversationObject, {})
CHANGE = _route(
    "conversation_change",
    "Change title or metadata",
    ConversationObject,
    body_of("ConversationRequest", required=False),
)
DELETE = _route("conversation_delete", "Delete a conversation, its answers and their feedback", Deleted, {})
RESET = _route("conversation_reset", "Forget what was said in a conversation", ConversationObject, {})
ITEMS = _route("conversation_items", "Questions and answers of a conversation", ItemList, {"parameters": PAGING})
RESPONSE = _route("response", "A kept response", ResponseObject, {})
RESPONSE_DELETE = _route("response_delete", "Delete a kept response", Deleted, {})
FEEDBACK = _route("feedback", "Rate an answer", FeedbackObject, body_of("FeedbackRequest"))
FEEDBACK_DELETE = _route("feedback_delete", "Take the rating of an answer back", Deleted, {})
FEEDBACK_LIST: dict[str, Any] = {
    "name": "feedback_list",
    "summary": "Ratings with their questions and answers",
    "tags": ["Operation"],
    "responses": {200: returned(FeedbackList, "A part of the list."), **FAILURES, **ADMIN_ERRORS},
    "openapi_extra": {**ADMIN, "parameters": [*PAGING, *FEEDBACK_FILTERS]},
}
