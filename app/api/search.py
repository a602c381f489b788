"""/v1/search: returns the passages for a query without calling a language model."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from app.api.access import Access
from app.api.answer_models import SearchResult
from app.api.bodies import JsonResponse
from app.api.facets import facets_of, shown_query
from app.api.middleware.admission import cancel_on_disconnect
from app.api.middleware.requestlog import info_of
from app.api.parsing import validated
from app.api.request_models import SearchRequest
from app.api.search_rows import rows_of
from app.api.service import Service
from app.core import turn
from app.core.errors import RequestError, quoted
from app.core.log_message import LogMessage

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

LISTS = {"collection": "collections", "language": "languages"}
"""Parameters of the address, and the fields of `filters` that they are."""

log = logging.getLogger("app.api")


@dataclass(frozen=True)
class Search:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """The passages, best first."""
        access = self.service.access(request)
        body = await self.service.read(request, SearchRequest)
        return await self._respond(request, access, body)

    async def get(self, request: Request) -> Response:
        """The same for a query in the address."""
        access, body = self.service.access(request), from_parameters(request.query_params)
        known = (code for code in body.filters.languages if code in self.service.settings.languages)
        return await self._respond(request, access, body.model_copy(update={"language": next(known, None)}))

    async def _respond(self, request: Request, access: Access, body: SearchRequest) -> Response:
        language = self.service.reader_language(request, body.language)
        info = info_of(request)
        info.fields.update(model=body.model)
        assistant = self.service.assistant(access, body.model)
        return JsonResponse(
            await cancel_on_disconnect(request.receive, self._search_result(assistant, body, info.id, language))
        )

    async def _search_result(self, assistant: Assistant, body: SearchRequest, id_: str, language: str) -> SearchResult:
        longest = self.service.settings.max_question
        async with self.service.limits.answer():
            return await search_result(assistant, body, id_, max_question=longest, language=language)


def from_parameters(parameters: QueryParams) -> SearchRequest:
    """The search in an address. Raises `RequestError` that names the first invalid parameter.

    `language` and `collection` may be repeated; both limit what is found.
    """
    values: dict[str, object] = dict(parameters)
    if "q" not in values:
        raise RequestError("q: is missing.", param="q")
    limits = {field: parameters.getlist(name) for name, field in LISTS.items() if values.pop(name, "")}
    limit = str(values.pop("limit", ""))
    if limit and not (limit.isascii() and limit.isdigit()):
        raise RequestError(f"limit: {quoted(limit)} isn't a whole number.", param="limit")
    typed = str(values.pop("as_you_type", "")).lower() in ("1", "true")
    given = {"query": values.pop("q"), "limit": int(limit) if limit else None, "as_you_type": typed, "filters": limits}
    return validated(SearchRequest, values | given, "The address")


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
        page=body.page or "",
        as_you_type=body.as_you_type,
    )
    after = await assistant.search(asked)
    return {
        "object": "list",
        "model": assistant.id,
        "query": shown_query(after, assistant),
        "language": after.language,
        "generation": after.generation.info.id,
        "facets": await facets_of(after, assistant),
        "data": rows_of(after),
    }
