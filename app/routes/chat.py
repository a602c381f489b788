"""/v1/chat/completions: answers the question of a request, as a stream or as a whole."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.core import turn
from app.core.turn import AnswerRecord
from app.http.door import info_of
from app.routes import openwebui
from app.routes.answer_models import ChatCompletion, ChatCompletionChunk
from app.routes.ask import Ask
from app.routes.description import ANSWER_FAILURES, answers, body_of
from app.routes.keeping import keeping_of, new_answer_id
from app.routes.request_models import ChatRequest
from app.routes.routers import router_of
from app.routes.service import Service
from app.routes.stream import Answer, ChatFormat

PATH = "/v1/chat/completions"


@dataclass(frozen=True)
class Chat:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """The answer to the last question of the conversation."""
        access = self.service.access(request)
        chat = await self.service.read(request, ChatRequest, small=False)
        info_of(request).fields.update(model=chat.model, stream=bool(chat.stream))
        return self.answer(request, await openwebui.ask_of(self.service, request, access, chat))

    def answer(self, request: Request, ask: Ask) -> Answer:
        """The answer to what is asked; for a task, what it gives."""
        info = info_of(request)
        info.answer = record = AnswerRecord(ask.assistant.id, ask.stream)
        id_ = f"chatcmpl-{new_answer_id(self.service, info)}"
        keeping = None
        if isinstance(ask.what, turn.Request):
            keeping = keeping_of(self.service, request, ask.place, record, (id_, ask.what.question), ask.reader)
            if ask.cached:
                events = self.service.answer(request, ask.assistant, ask.what, record)
            else:
                events = ask.assistant.answer(ask.what, record)
        else:
            record.task, events = ask.what.key, ask.what.run(record)
        form = ChatFormat(
            id_, int(time.time()), ask.assistant.id, ask.include_usage, ask.display.events, ask.display.status
        )
        return Answer(self.service, info, form, events, stream=ask.stream, keeping=keeping)


def router(service: Service) -> APIRouter:
    """The route of the chat API."""
    chat = Chat(service)
    said = "Answers the last message of the user from the indexed pages, in the language of the message."
    completion = answers(
        ChatCompletion, ChatCompletionChunk, "The answer, or with `stream` server-sent events.", "[DONE]"
    )
    described = router_of("OpenAI API", [
        ("chat", "POST", PATH, chat, "Ask a question", None, ANSWER_FAILURES | completion, {"description": said} | body_of(ChatRequest)),
    ])  # fmt: skip
    # serves what FastAPI's route behind it describes, which would look for dependencies at each request
    described.routes.insert(0, Route(PATH, chat.__call__, methods=["POST"]))
    return described
