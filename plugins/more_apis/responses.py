"""POST /v1/responses, OpenAI's Responses API."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies import encodable
from app.api.chat import ROLES, Answer, InputMessage, earlier, request_of, with_fields
from app.api.description import ANSWER_FAILURES, body_of, described, json_of, stream_of
from app.api.errors import api_error
from app.api.keeping import Place, check_unused, found, keeping_of, messages_of, new_answer_id, owner_of
from app.api.middleware.keys import Access
from app.api.middleware.requestlog import info_of
from app.api.service import Service
from app.api.stream import CompletedAnswer
from app.core import turn
from app.core.errors import RequestError, quoted
from app.core.log_message import LogMessage
from app.core.turn import AnswerRecord, Done, Failure, Source, Status, Usage
from plugins.more_apis.objects import (
    Citation,
    EventFields,
    InputItem,
    OutputMessage,
    OutputText,
    ResponseObject,
    ResponsesRequest,
    ResponseStatus,
    ResponseStreamEvent,
    ResponseUsage,
)

log = logging.getLogger("app.api")


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
    request = request_of(messages_in, "input")
    return with_fields(replace(request, id=id, sampling=turn.Sampling(body.temperature, body.max_output_tokens)), body)


def _input_item(item: InputItem, index: int) -> InputMessage:
    role = ROLES.get(item.role or "", "") if item.type in (None, "message") else ""
    return InputMessage(role, item.content if role else "", f"input[{index}].content")


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
        info.keeping = keeping_of(self.service, request.headers, place, record, (f"resp_{id_}", asked.question))
        form = ResponsesFormat(id_, int(time.time()), assistant.id, body, place)
        events = self.service.answer(request, assistant, asked, record)
        return Answer(self.service, info, form, events, stream=stream)


@dataclass(frozen=True, slots=True)
class ResponsesFormat:
    """The format of the Responses API. Its fields are the same in all events; `created` is in Unix seconds."""

    id: str
    created: int
    model: str
    asked: ResponsesRequest
    place: Place

    def encoder(self) -> ResponsesEncoder:
        """An encoder for a stream."""
        return ResponsesEncoder(self)

    def whole(self, answer: CompletedAnswer) -> ResponseObject:
        """The response object of a complete answer."""
        cut = answer.done.finish_reason == "length"
        body = self.response("incomplete" if cut else "completed", [self.item([part(answer.text, answer.sources)])])
        body["usage"] = _usage(answer.usage)
        body["incomplete_details"] = {"reason": "max_output_tokens"} if cut else None
        body["sources"] = answer.sources
        if answer.done.extractive:
            body["extractive"] = True
        return body

    def response(self, status: ResponseStatus, output: list[OutputMessage]) -> ResponseObject:
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

    def item(self, content: list[OutputText]) -> OutputMessage:
        """The message with this content; in progress while it has none."""
        status: Literal["in_progress", "completed"] = "completed" if content else "in_progress"
        return {"id": self.item_id, "type": "message", "status": status, "role": "assistant", "content": content}


def part(text: str, sources: Sequence[Source]) -> OutputText:
    """The text with an annotation for each citation `[n]` of a source."""
    by_number = {source.number: source for source in sources}
    places = [(match, by_number.get(int(match[1]))) for match in re.finditer(r"\[(\d{1,4})\](?!\()", text)]
    annotations: list[Citation] = [
        {
            "type": "url_citation",
            "start_index": match.start(),
            "end_index": match.end(),
            "url": source.url,
            "title": source.name,
        }
        for match, source in places
        if source
    ]
    return {"type": "output_text", "text": encodable(text), "annotations": annotations, "logprobs": []}


def _usage(usage: Usage) -> ResponseUsage:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


@dataclass
class ResponsesEncoder:
    """Encodes events as named server-sent events, numbered from 0."""

    form: ResponsesFormat
    _texts: list[str] = field(default_factory=list)
    _number: int = -1

    def text(self, text: str) -> bytes:
        """A piece of the answer; the first one follows the events that open the response."""
        begin = b"" if self._texts else self._begin()
        self._texts.append(text)
        return begin + self._content_event("output_text.delta", {"delta": encodable(text), "logprobs": []})

    def event(self, event: Source | Status) -> bytes:  # noqa: ARG002  # required by `StreamEncoder`
        """Nothing: sources are part of the complete text, and the API has no status lines."""
        return b""

    def done(self, event: Done, usage: Usage, sources: Sequence[Source]) -> bytes:
        """The events with the complete text and the complete response."""
        body = self.form.whole(CompletedAnswer("".join(self._texts), usage, sources, event))
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

    def failure(self, event: Failure, request_id: str) -> bytes:
        """The failed response with the text so far."""
        begin = b"" if self._texts else self._begin()
        error = api_error(event.error, request_id).error
        content = [part("".join(self._texts), ())] if self._texts else []
        body = self.form.response("failed", [self.form.item(content)] if content else [])
        body["error"] = {"code": error["code"] or error["type"], "message": error["message"]}
        return begin + self._event("failed", {"response": body})

    def _begin(self) -> bytes:
        opened = self.form.response("in_progress", [])
        return b"".join(
            (
                self._event("created", {"response": opened}),
                self._event("in_progress", {"response": opened}),
                self._event("output_item.added", {"output_index": 0, "item": self.form.item([])}),
                self._content_event("content_part.added", {"part": part("", ())}),
            )
        )

    def _content_event(self, kind: str, fields: EventFields) -> bytes:
        return self._event(kind, {"item_id": self.form.item_id, "output_index": 0, "content_index": 0, **fields})

    def _event(self, kind: str, fields: EventFields) -> bytes:
        self._number += 1
        event: ResponseStreamEvent = {"type": f"response.{kind}", "sequence_number": self._number, **fields}
        return b"event: " + event["type"].encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n"


_RESPONSES = described(
    "Ask a question, in the form of the Responses API",
    failures=ANSWER_FAILURES
    | {
        200: {
            "description": "The answer, or with `stream` named server-sent events.",
            "content": {**json_of(ResponseObject), **stream_of(ResponseStreamEvent)},
        }
    },
    name="responses",
    tag="OpenAI API",
    description="Like the chat API. `previous_response_id` or `conversation` put what was said before it.",
    **body_of(ResponsesRequest),
)


def add_to(app: FastAPI, service: Service) -> None:
    """Add the route."""
    app.add_api_route("/v1/responses", Responses(service), methods=["POST"], **_RESPONSES)
