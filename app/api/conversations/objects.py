"""Bodies of requests and responses of the Conversations API, as OpenAI defines them, and of feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from app.api.answer_models import Sources
from app.api.request_models import RequestModel
from app.api.responses.objects import OutputText

Key = Annotated[str, Field(max_length=64)]
Value = Annotated[str, Field(max_length=512)]
Metadata = Annotated[
    dict[Key, Value] | None, Field(max_length=16, description="Up to 16 texts of the client, returned unchanged.")
]
Title = Annotated[str | None, Field(max_length=200, description="Without one, the first question is the title.")]


class ConversationRequest(RequestModel):
    """A new conversation, or what changes in one."""

    title: Title = None
    metadata: Metadata = None
    items: None = Field(None, description="Refused: send earlier messages with the question.")


class FeedbackRequest(RequestModel):
    """What the reader thinks of an answer."""

    rating: Literal["up", "down"]
    comment: str | None = Field(None, max_length=2000, description="Without it, an earlier comment stays.")


class ConversationObject(TypedDict):
    """A conversation."""

    id: str
    object: Literal["conversation"]
    created_at: int
    title: Annotated[str, Field(description="The title it was given, else its first question.")]
    metadata: Mapping[str, str]


class ConversationList(TypedDict):
    """A part of the list of conversations."""

    object: Literal["list"]
    data: list[ConversationObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Deleted(TypedDict):
    """What was deleted."""

    id: str
    object: Literal["conversation.deleted", "response", "feedback.deleted"]
    deleted: bool


class InputText(TypedDict):
    """A question."""

    type: Literal["input_text"]
    text: str


class ConversationItem(TypedDict):
    """A question or an answer. Answers have fields that OpenAI's don't have, from `answer` on."""

    id: str
    type: Literal["message"]
    status: Literal["completed", "incomplete"]
    role: Literal["user", "assistant"]
    content: list[InputText | OutputText]
    answer: NotRequired[Annotated[str, Field(description="Id of the answer, for feedback.")]]
    created_at: NotRequired[int]
    sources: NotRequired[Sources]
    rating: NotRequired[Annotated[str, Field(description="up, down, or empty.")]]


class ItemList(TypedDict):
    """A part of the questions and answers of a conversation."""

    object: Literal["list"]
    data: Sequence[ConversationItem]
    first_id: str | None
    last_id: str | None
    has_more: bool


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


class FeedbackList(TypedDict):
    """A part of the list of feedback."""

    object: Literal["list"]
    data: list[GivenFeedback]
    first_id: str | None
    last_id: str | None
    has_more: bool
