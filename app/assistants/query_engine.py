"""An assistant as a LlamaIndex query engine, by which the service itself answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, Response
from llama_index.core.query_engine import BaseQueryEngine
from llama_index.core.schema import QueryBundle

from app.core.turn import AnswerRecord, Done, Events, Failure, Message, Request, Text
from app.models.nodes import node_of

Answers = Callable[[Request, AnswerRecord], Events]


@dataclass
class AskedBundle(QueryBundle):  # type: ignore[misc]  # LlamaIndex isn't typed
    """A question with the request that it is of; `record` gets what the steps find out."""

    request: Request | None = None
    record: AnswerRecord = field(default_factory=AnswerRecord)


class AnswerStream(AsyncStreamingResponse):  # type: ignore[misc]
    """An answer as it is written: read `events`, or its texts (`response_gen`), once.

    After the end, `source_nodes` are the passages that were found, best first, and `metadata` has `sources` (the sections that the
    answer links to), `extractive` (no language model wrote it) and `trace` (the steps with their milliseconds). A failure is raised by `response_gen`, and an event of `events`.
    """

    def __init__(self, events: Events, record: AnswerRecord) -> None:
        self._events, self._record = events, record
        super().__init__(response_gen=self._texts(), metadata={})

    @property
    def events(self) -> Events:
        """Everything that readers are told, in order."""
        return self._events

    async def _texts(self) -> AsyncGenerator[str, None]:
        async with aclosing(self._events) as events:
            async for event in events:
                if isinstance(event, Failure):
                    raise event.error
                self._record.add(event)
                if isinstance(event, Text):
                    yield event.text
                elif isinstance(event, Done):
                    self._ended(event)

    def _ended(self, done: Done) -> None:
        turn = self._record.turn
        if turn:
            self.source_nodes[:] = [node_of(hit) for hit in turn.hits]
        steps = [{"step": record.step, "ms": record.ms} for record in (turn.trace if turn else ())]
        self.metadata = {"sources": [*self._record.sources], "extractive": done.extractive, "trace": steps}


class AssistantQueryEngine(BaseQueryEngine):  # type: ignore[misc]
    """Answers a question by the steps of an assistant, from the live generation of its index: an `AnswerStream`."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(callback_manager=None)
        self._answers = answers

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}  # the prompts are those of the assistant

    async def _aquery(self, query_bundle: QueryBundle) -> AnswerStream:
        asked = query_bundle if isinstance(query_bundle, AskedBundle) else AskedBundle(query_bundle.query_str)
        request = asked.request or Request((Message("user", asked.query_str),))
        return AnswerStream(self._answers(request, asked.record), asked.record)

    def _query(self, query_bundle: QueryBundle) -> Response:
        async def whole() -> Response:
            return await (await self._aquery(query_bundle)).get_response()

        return asyncio.run(whole())
