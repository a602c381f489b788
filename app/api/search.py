"""POST /v1/search: returns the passages for a query without calling a language model."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from app.api.answer_models import Passage, SearchResult
from app.api.bodies import JsonResponse
from app.api.middleware.admission import cancel_on_disconnect
from app.api.middleware.requestlog import info_of
from app.api.request_models import SearchRequest
from app.api.service import Service
from app.core import turn
from app.core.errors import RequestError
from app.core.log_message import LogMessage
from app.core.types import Hit
from app.pipeline.steps.cite import passages_of

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

log = logging.getLogger("app.api")


@dataclass(frozen=True)
class Search:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """The passages, best first."""
        self.service.keys.check(request)
        body = await self.service.read(request, SearchRequest)
        language = self.service.reader_language(request, body.language)
        info = info_of(request)
        info.fields.update(model=body.model)
        assistant = self.service.assistants.get(body.model)
        return JsonResponse(
            await cancel_on_disconnect(request.receive, self._search_result(assistant, body, info.id, language))
        )

    async def _search_result(self, assistant: Assistant, body: SearchRequest, id_: str, language: str) -> SearchResult:
        longest = self.service.settings.max_question
        async with self.service.limits.answer():
            return await search_result(assistant, body, id_, max_question=longest, language=language)


async def search_result(
    assistant: Assistant,
    body: SearchRequest,
    id: str,  # noqa: A002  # as Request names it
    *,
    max_question: int,
    language: str = "",
) -> SearchResult:
    """The body of the response; `language` is that of the client. Raises `RequestError` if the query is empty or too long."""
    query = body.query.strip()
    if not query:
        raise RequestError("query: is empty.", param="query")
    if len(query) > max_question:
        raise RequestError(
            f"query: has {len(query)} characters, but at most {max_question} are allowed. Shorten it.",
            param="query",
            code="too_long",
        )
    log.debug(LogMessage("search", id=id, text=query))
    asked = turn.Request(
        (turn.Message("user", query),),
        assistant.id,
        id,
        filters=body.filters.filters,
        limit=body.limit or 0,
        language=language,
    )
    after = await assistant.search(asked)
    return {
        "object": "list",
        "model": assistant.id,
        "language": after.language,
        "generation": after.generation.info.id,
        "data": [_passage(hit, source) for hit, source in zip(after.hits, passages_of(after), strict=True)],
    }


def _passage(hit: Hit, source: turn.Source) -> Passage:
    chunk = hit.chunk
    return {
        "object": "passage",
        "id": chunk.id,
        "number": source.number,
        "title": source.title,
        "url": source.url,
        "section": source.section,
        "language": source.language,
        "score": source.score,
        "translated_from": source.translated_from,
        "headings": chunk.heading_path,
        "collection": chunk.collection,
        "published": chunk.published,
        "modified": chunk.modified,
        "text": chunk.text,
        "scores": {"lexical": hit.lexical, "vector": hit.cosine, "fused": hit.fused, "rerank": hit.rerank},
    }
