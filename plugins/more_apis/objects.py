"""Bodies of requests and responses of the Responses API and the Conversations API, as OpenAI defines them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, field_validator
from typing_extensions import TypedDict

from app.api.answer_models import Confidence, Extractive, Sources, SupportField, UnsupportedField
from app.api.bodies import (
    MAX_INT,
    AnswerRequest,
    MessagePart,
    Name,
    Place,
    RequestModel,
    ResponseFormat,
)
from app.api.feedback import ListPart


class InputPart(MessagePart):
    """A part of a message of /v1/responses."""

    type: Literal["input_text", "output_text", "refusal", "input_image", "input_file", "input_audio"]


class InputItem(RequestModel):
    """One message of the conversation; items of other types (calls, reasoning) are skipped."""

    type: str | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[InputPart] | None = None


class TextOptions(RequestModel):
    """Options of the text output."""

    format: ResponseFormat | None = None


class ResponsesRequest(AnswerRequest):
    """A request of the Responses API."""

    input: str | list[InputItem] = Field(min_length=1, examples=["How do I create a volume?"])
    instructions: str | None = Field(None, description="Instructions on style, like a system message.")
    max_output_tokens: int | None = Field(None, ge=1, le=MAX_INT, description="Longest answer, in tokens.")
    text: TextOptions | None = None
    previous_response_id: Name | None = Field(None, description="Id of the answer that this question follows.")
    background: bool | None = Field(
        None, description="Only false is supported.", json_schema_extra={"enum": [False, None]}
    )
    metadata: dict[Name, Place] | None = Field(None, max_length=16, description="Returned unchanged.")

    @field_validator("background")
    @classmethod
    def _refuse(cls, value: bool | None) -> bool | None:
        if value:
            raise ValueError("background responses aren't supported")
        return value


class ConversationRequest(RequestModel):
    """A new conversation, or what changes in one."""

    title: str | None = Field(None, max_length=200, description="Without one, the first question is the title.")
    metadata: dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]] | None = Field(
        None, max_length=16, description="Up to 16 texts of the client, returned unchanged."
    )
    items: None = Field(None, description="Refused: send earlier messages with the question.")


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
    """The reason why an answer is incomplete."""

    reason: Literal["max_output_tokens"]


class ResponseError(TypedDict):
    """The reason why a stream failed."""

    code: str
    message: str


class ConversationId(TypedDict):
    """The conversation that the response belongs to."""

    id: str


ResponseStatus = Literal["completed", "incomplete", "in_progress", "failed"]


class ResponseObject(TypedDict):
    """An answer in the form of the Responses API. Fields without a meaning here have neutral values."""

    id: str
    object: Literal["response"]
    created_at: int
    status: ResponseStatus
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
    unsupported: NotRequired[UnsupportedField]
    confidence: NotRequired[Confidence]
    support: NotRequired[SupportField]


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


class ConversationObject(TypedDict):
    """A conversation."""

    id: str
    object: Literal["conversation"]
    created_at: int
    title: Annotated[str, Field(description="The title it was given, else its first question.")]
    metadata: Mapping[str, str]


class ConversationList(ListPart):
    """A part of the list of conversations."""

    data: list[ConversationObject]


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


class ItemList(ListPart):
    """A part of the questions and answers of a conversation."""

    data: Sequence[ConversationItem]
