"""Models of the bodies of the Responses API, only for /openapi.json (see `app.api.answer_models`)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.api.answer_models import SourceObject


class Citation(BaseModel):
    """A citation of a source in the text."""

    type: Literal["url_citation"]
    start_index: int
    end_index: int
    url: str
    title: str


class OutputText(BaseModel):
    """The answer, Markdown."""

    type: Literal["output_text"]
    text: str
    annotations: list[Citation]
    logprobs: list[Any]


class OutputMessage(BaseModel):
    """The one message of a response."""

    id: str
    type: Literal["message"]
    status: Literal["completed"]
    role: Literal["assistant"]
    content: list[OutputText]


class InputDetails(BaseModel):
    """Details of the input tokens."""

    cached_tokens: int


class OutputDetails(BaseModel):
    """Details of the output tokens."""

    reasoning_tokens: int


class ResponseUsage(BaseModel):
    """Tokens of all language model calls for this answer."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class IncompleteDetails(BaseModel):
    """Why an answer is incomplete."""

    reason: Literal["max_output_tokens"]


class ResponseError(BaseModel):
    """Why a stream failed."""

    code: str
    message: str


class ResponseObject(BaseModel):
    """An answer in the form of the Responses API. Fields without a meaning here have neutral values."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed", "incomplete", "in_progress", "failed"]
    background: Literal[False]
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[OutputMessage]
    parallel_tool_calls: Literal[False]
    previous_response_id: None
    reasoning: None
    store: Literal[False]
    temperature: float | None
    text: dict[str, Any]
    tool_choice: Literal["none"]
    tools: list[Any]
    top_p: None
    truncation: Literal["disabled"]
    usage: ResponseUsage | None
    sources: list[SourceObject] | None = Field(None, description="As in a chat completion; absent until the end.")
    extractive: bool | None = Field(
        None, description="True if the answer was written without a language model; else absent."
    )


class ResponseStreamEvent(BaseModel):
    """One event of a stream; the last one is response.completed, response.incomplete or response.failed."""

    type: str
    sequence_number: int
    response: ResponseObject | None = None
    delta: str | None = None
    text: str | None = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    item: dict[str, Any] | None = None
    part: OutputText | None = None
    logprobs: list[Any] | None = None
