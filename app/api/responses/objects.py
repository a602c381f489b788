"""Bodies of the Responses API (see `app.api.answer_models`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from app.api.answer_models import Extractive, Sources


class Citation(TypedDict):
    """A citation of a source in the text."""

    type: Literal["url_citation"]
    start_index: int
    end_index: int
    url: str
    title: str


class OutputText(TypedDict):
    """The answer, Markdown."""

    type: Literal["output_text"]
    text: str
    annotations: list[Citation]
    logprobs: list[Any]


class OutputMessage(TypedDict):
    """The one message of a response."""

    id: str
    type: Literal["message"]
    status: Literal["in_progress", "completed"]
    role: Literal["assistant"]
    content: list[OutputText]


class InputDetails(TypedDict):
    """Details of the input tokens."""

    cached_tokens: int


class OutputDetails(TypedDict):
    """Details of the output tokens."""

    reasoning_tokens: int


class ResponseUsage(TypedDict):
    """Tokens of all language model calls for this answer."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class IncompleteDetails(TypedDict):
    """Why an answer is incomplete."""

    reason: Literal["max_output_tokens"]


class ResponseError(TypedDict):
    """Why a stream failed."""

    code: str
    message: str


class ConversationId(TypedDict):
    """The conversation that the response belongs to."""

    id: str


Status = Literal["completed", "incomplete", "in_progress", "failed"]


class ResponseObject(TypedDict):
    """An answer in the form of the Responses API. Fields without a meaning here have neutral values."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Status
    background: Literal[False]
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: Mapping[str, str]
    model: str
    output: list[OutputMessage]
    parallel_tool_calls: Literal[False]
    previous_response_id: str | None
    conversation: ConversationId | None
    reasoning: None
    store: bool
    temperature: float | None
    text: dict[str, Any]
    tool_choice: Literal["none"]
    tools: list[Any]
    top_p: None
    truncation: Literal["disabled"]
    usage: ResponseUsage | None
    sources: NotRequired[Annotated[Sources, Field(description="As in a chat completion; absent until the end.")]]
    extractive: NotRequired[Extractive]


class EventFields(TypedDict, total=False):
    """The fields of an event, which depend on its type."""

    response: ResponseObject
    delta: str
    text: str
    item_id: str
    output_index: int
    content_index: int
    item: OutputMessage
    part: OutputText
    logprobs: list[Any]


class ResponseStreamEvent(EventFields):
    """One event of a stream; the last one is response.completed, response.incomplete or response.failed."""

    type: str
    sequence_number: int
