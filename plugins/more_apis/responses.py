"""POST /v1/responses, OpenAI's Responses API."""

import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NotRequired

import orjson
from fastapi import APIRouter
from pydantic import Field, field_validator
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.core import turn
from app.core.errors import RequestError, quoted
from app.core.log_message import LogMessage
from app.core.turn import AnswerRecord, Failure, Source, Status
from app.http.bodies import Name, RequestModel, encodable
from app.http.door import info_of
from app.http.errors import api_error
from app.http.keys import Access
from app.http.sse import encoded
from app.routes.answer_models import OwnFields, Sources
from app.routes.ask import ROLES, InputMessage, earlier, request_of
from app.routes.description import ANSWER_FAILURES, answers, body_of
from app.routes.keeping import Place, check_unused, found, keeping_of, messages_of, new_answer_id
from app.routes.openwebui import reader_of, unwrapped
from app.routes.request_models import AnswerRequest, MessagePart, ResponseFormat, TokenCount
from app.routes.routers import router_of
from app.routes.service import Service
from app.routes.stream import Answer, own_fields


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
    max_output_tokens: TokenCount = Field(None, description="Longest answer, in tokens; -1 is no limit.")
    text: TextOptions | None = None
    previous_response_id: Name | None = Field(None, description="Id of the answer that this question follows.")
    background: bool | None = Field(
        None, description="Only false is supported.", json_schema_extra={"enum": [False, None]}
    )
    metadata: dict[Name, Annotated[str, Field(max_length=1000)]] | None = Field(
        None, max_length=16, description="Returned unchanged."
    )

    @field_validator("background")
    @classmethod
    def _refuse(cls, value: bool | None) -> bool | None:
        if value:
            raise ValueError("background responses aren't supported")
        return value


ResponseStatus = Literal["completed", "incomplete", "in_progress", "failed"]


class ResponseObject(OwnFields):
    """An answer in the form of OpenAI's Responses API, whose other fields have their meaning there, or a neutral value."""

    id: str
    object: Literal["response"]
    created_at: int
    status: ResponseStatus
    model: str
    output: Annotated[list[Any], Field(description="One message, whose text has an annotation for each source.")]
    sources: NotRequired[Annotated[Sources, Field(description="As in a chat completion; absent until the end.")]]


class ResponseStreamEvent(TypedDict):
    """One event of a stream, with the fields that its type has in OpenAI's API; the last one is response.completed, response.incomplete or response.failed."""

    type: str
    sequence_number: int


log = logging.getLogger("app.http")


def from_responses(
    body: ResponsesRequest,
    id: str,  # noqa: A002
    *,
    history: Sequence[turn.Message] = (),
) -> turn.Request:
    """The same as `from_chat` for a request of the Responses API."""
    parts = body.input
    messages_in = [InputMessage("system", body.instructions, "instructions")] if body.instructions else []
    messages_in += earlier(history)
    if isinstance(parts, str):
        messages_in.append(InputMessage("user", parts, "input"))
    else:
        messages_in += [_input_item(item, i) for i, item in enumerate(parts)]
    sampling = turn.Sampling(body.temperature, body.max_output_tokens)
    return request_of(body, "input", messages_in, unwrapped, id=id, sampling=sampling)


def _input_item(item: InputItem, index: int) -> InputMessage:
    role = ROLES.get(item.role or "", "") if item.type in (None, "message") else ""
    return InputMessage(role, item.content if role else "", f"input[{index}].content")


async def place_of_response(service: Service, access: Access, body: ResponsesRequest) -> Place:
    """The place of a question of the Responses API. Raises `RequestError` as OpenAI does."""
    owner, store = access.owner, service.conversations
    id_, previous = body.conversation_id, body.previous_response_id or ""
    if id_ and previous:
        raise RequestError(
            "Mutually exclusive parameters: send only one of 'previous_response_id' and 'conversation'.",
            param="previous_response_id",
            code="mutually_exclusive_parameters",
        )
    if store is None:
        check_unused("conversation" if id_ else "previous_response_id", id_ or previous, "input")
        return Place(owner, kept=False)
    keeps = body.store is not False
    if id_:
        return Place(owner, keeps, id_, history=messages_of(found(await store.turns_of(owner, id_), id_)))
    if not previous:
        return Place(owner, keeps)
    turns = await store.turns_until(owner, previous)
    if turns is None:
        raise RequestError(
            f"Previous response with id {quoted(previous)} not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return Place(owner, keeps, previous=previous, history=messages_of(turns))


@dataclass(frozen=True)
class Responses:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """The answer to the last question of the input."""
        access = self.service.access(request)
        body = await self.service.read(request, ResponsesRequest, small=False)
        info, stream = info_of(request), bool(body.stream)
        info.fields.update(model=body.model, stream=stream)
        place = await place_of_response(self.service, access, body)
        asked = from_responses(body, info.id, history=place.history)
        asked = replace(asked, language=self.service.reader_language(request, body.language))
        log.debug(LogMessage("question", id=info.id, text=asked.question))
        assistant = self.service.assistant(access, body.model)
        record = info.answer = AnswerRecord(assistant.id, stream)
        id_ = new_answer_id(self.service, info)
        keeping = keeping_of(
            self.service,
            request,
            place,
            record,
            (f"resp_{id_}", asked.question),
            reader_of(self.service, request.headers),
        )
        form = ResponsesFormat(id_, int(time.time()), assistant.id, body, place)
        events = self.service.answer(request, assistant, asked, record)
        return Answer(self.service, info, form, events, stream=stream, keeping=keeping)


@dataclass(slots=True)
class ResponsesFormat:
    """The form of the Responses API: named server-sent events, numbered from 0. `created` is in Unix seconds."""

    id: str
    created: int
    model: str
    asked: ResponsesRequest
    place: Place
    status: bool = False
    _number: int = -1

    def whole(self, record: AnswerRecord) -> dict[str, Any]:
        """The response object of a complete answer."""
        assert record.done is not None
        cut = record.done.finish_reason == "length"
        content = [part("".join(record.texts), record.sources)]
        body = self.response("incomplete" if cut else "completed", [self.item(content)])
        usage = record.usage
        body["usage"] = {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.total,
        }
        body["incomplete_details"] = {"reason": "max_output_tokens"} if cut else None
        body["sources"] = record.sources
        body.update(own_fields(record.done))
        return body

    def text(self, text: str) -> bytes:
        """A piece of the answer; the first one follows the events that open the response."""
        return self._begin() + self._content_event("output_text.delta", {"delta": encodable(text), "logprobs": []})

    def event(self, event: Source | Status) -> bytes:  # noqa: ARG002  # required by `AnswerFormat`
        """Nothing: sources are part of the complete text, and the API has no status lines."""
        return b""

    def done(self, record: AnswerRecord) -> bytes:
        """The events with the complete text and the complete response."""
        body = self.whole(record)
        (item,) = body["output"]
        (written,) = item["content"]
        return b"".join(
            (
                self._content_event("output_text.done", {"text": written["text"], "logprobs": []}),
                self._content_event("content_part.done", {"part": written}),
                self._event("output_item.done", {"output_index": 0, "item": item}),
                self._event(body["status"], {"response": body}),
            )
        )

    def failure(self, event: Failure, request_id: str, record: AnswerRecord) -> bytes:
        """The failed response with the text so far."""
        begin = self._begin()
        error = api_error(event.error, request_id).error
        output = [self.item([part("".join(record.texts), ())])] if record.texts else []
        body = self.response("failed", output)
        body["error"] = {"code": error["code"] or error["type"], "message": error["message"]}
        return begin + self._event("failed", {"response": body})

    def _begin(self) -> bytes:
        """The events that open the response the first time, then nothing."""
        if self._number >= 0:
            return b""
        opened = self.response("in_progress", [])
        return b"".join(
            (
                self._event("created", {"response": opened}),
                self._event("in_progress", {"response": opened}),
                self._event("output_item.added", {"output_index": 0, "item": self.item([])}),
                self._content_event("content_part.added", {"part": part("", ())}),
            )
        )

    def _content_event(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        return self._event(kind, {"item_id": self.item_id, "output_index": 0, "content_index": 0, **fields})

    def _event(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        self._number += 1
        event = {"type": f"response.{kind}", "sequence_number": self._number, **fields}
        return encoded(orjson.dumps(event), event["type"])

    def response(self, status: ResponseStatus, output: list[Any]) -> dict[str, Any]:
        """The response object with this status and output."""
        return {
            "id": f"resp_{self.id}",
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": self.asked.instructions,
            "max_output_tokens": self.asked.max_output_tokens,
            "metadata": self.asked.metadata or {},
            "model": self.model,
            "output": output,
            "parallel_tool_calls": False,
            "previous_response_id": self.place.previous or None,
            "conversation": {"id": self.place.conversation} if self.place.conversation else None,
            "reasoning": None,
            "store": self.place.kept,
            "temperature": self.asked.temperature,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None,
        }

    @property
    def item_id(self) -> str:
        """The id of the only message."""
        return f"msg_{self.id}"

    def item(self, content: list[Any]) -> dict[str, Any]:
        """The message with this content; in progress while it has none."""
        status = "completed" if content else "in_progress"
        return {"id": self.item_id, "type": "message", "status": status, "role": "assistant", "content": content}


def part(text: str, sources: Sequence[Source]) -> dict[str, Any]:
    """The text with an annotation for each citation `[n]` of a source."""
    by_number = {source.number: source for source in sources}
    places = [(match, by_number.get(int(match[1]))) for match in re.finditer(r"\[(\d{1,4})\](?!\()", text)]
    annotations = [
        {
            "type": "url_citation",
            "start_index": at.start(),
            "end_index": at.end(),
            "url": source.url,
            "title": source.name,
        }
        for at, source in places
        if source
    ]
    return {"type": "output_text", "text": encodable(text), "annotations": annotations, "logprobs": []}


def router(service: Service) -> APIRouter:
    """The route of the Responses API."""
    said = "The answer, or with `stream` named server-sent events."
    told = "Like the chat API. `previous_response_id` or `conversation` put what was said before it."
    return router_of("OpenAI API", (
        ("responses", "POST", "/v1/responses", Responses(service), "Ask a question, in the form of the Responses API", None,
         ANSWER_FAILURES | answers(ResponseObject, ResponseStreamEvent, said), {"description": told, **body_of(ResponsesRequest)}),
    ))  # fmt: skip
