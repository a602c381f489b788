"""/v1/search: returns the passages for a query, with the words of the query marked, without calling a language model."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from app.citing.asked import asked_stems
from app.citing.sections import best_section, section_text
from app.core import turn
from app.core.errors import RequestError
from app.core.generation import GenerationInfo, page_versions
from app.core.log_message import LogMessage
from app.core.turn import Turn
from app.core.types import Filters, Hit, Section
from app.http.bodies import JsonResponse, Name, Names, RequestModel, filled
from app.http.door import info_of
from app.http.keys import Access
from app.http.limits import cancel_on_disconnect
from app.index import Store
from app.index.protocols import Generation
from app.pipeline.steps.cite import source_of
from app.pipeline.type_ahead import query_words, read, sections_of
from app.routes.answer_models import Facets, Passage, SearchResult
from app.routes.description import FAILURES, body_of
from app.routes.request_models import MAX_QUESTION, PageAddress, SearchFilters, SearchRequest
from app.routes.routers import router_of
from app.routes.service import Service
from app.text.analysis import fold
from app.text.blocks import plain_title
from app.text.invisible import visible
from app.text.query_highlight import QueryWords

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

log = logging.getLogger("app.http")


def rows_of(turn: Turn) -> list[Passage]:
    """The passages, best first, each for the section with most words of the query; of a search as you type, each section once, and
    those of a page one below the other.
    """
    typed = turn.request.as_you_type
    words = query_words(turn)
    sections = sections_of(turn) if typed else _sections(turn)
    rows = [_row(number, *one, words) for number, one in enumerate(zip(turn.hits, sections, strict=True), start=1)]
    return list(_grouped(rows)) if typed else rows


def _grouped(rows: Sequence[Passage]) -> Iterator[Passage]:
    by_page: dict[str, dict[str, Passage]] = {}
    for row in rows:
        by_page.setdefault(row["url"].partition("#")[0], {}).setdefault(row["url"], row)
    ordered = (row for of_page in by_page.values() for row in of_page.values())
    for number, row in enumerate(ordered, start=1):
        yield {**row, "number": number}


def _sections(turn: Turn) -> list[Section | None]:
    """Of each hit the section with most words of the query."""
    wanted = asked_stems(turn)
    return [best_section(hit.chunk, wanted) for hit in turn.hits]


def _row(number: int, hit: Hit, section: Section | None, words: QueryWords) -> Passage:
    chunk, source = hit.chunk, source_of(number, hit, section)
    headings = map(plain_title, section.path if section else ())
    breadcrumbs = list(dict.fromkeys((source.title, *headings)))
    return filled(
        Passage,
        source,
        object="passage",
        id=chunk.id,
        breadcrumbs=breadcrumbs,
        headings=chunk.heading_path,
        collection=chunk.collection,
        versions=page_versions(chunk.url, chunk.versions),
        published=chunk.published,
        modified=chunk.modified,
        text=chunk.text,
        highlights={
            "breadcrumbs": [words.pieces(crumb) for crumb in breadcrumbs],
            "excerpt": words.excerpt(section_text(chunk, section)),
        },
        scores={"lexical": hit.lexical, "vector": hit.cosine, "fused": hit.fused, "rerank": hit.rerank},
    )


_languages: WeakKeyDictionary[Store, tuple[GenerationInfo, dict[Filters, AbstractSet[str]]]] = WeakKeyDictionary()
"""Languages of the pages within each limit, which are read once for each generation."""


async def facets_of(turn: Turn, assistant: Assistant) -> Facets:
    """The collections and languages of the index that the reader may choose from."""
    info, allowed = turn.generation.info, assistant.limits
    collections = {source.collection for source in info.sources} | {hit.chunk.collection for hit in turn.hits}
    languages = info.languages if allowed == Filters() else await _languages_within(turn, assistant.store, allowed)
    return {
        "collections": sorted(name for name in collections if name in allowed.collections or not allowed.collections),
        "languages": sorted(code for code in languages if code in allowed.languages or not allowed.languages),
    }


async def _languages_within(turn: Turn, store: Store, allowed: Filters) -> AbstractSet[str]:
    generation: Generation = turn.generation
    info = generation.info
    known, by_limits = _languages.get(store, (info, {}))
    if known != info:
        by_limits = {}
    if allowed not in by_limits:
        pages = await generation.first_chunks()
        by_limits[allowed] = {
            page.language for page in pages if allowed.admits(page.url, page.collection, {page.language}, page.versions)
        }
    _languages[store] = (info, by_limits)
    return by_limits[allowed] | {hit.chunk.language for hit in turn.hits}  # translations have languages of their own


def shown_query(turn: Turn, assistant: Assistant) -> str:
    """The query as it was searched; as it was typed if a correction is no word of what was found.

    Corrections come from all words of the index, which a limited key mustn't learn.
    """
    typed = turn.request.question
    searched = turn.refined.text if turn.refined else typed
    if searched == typed or assistant.limits == Filters():
        return searched
    corrections = {fold(word) for word in searched.split()} - {fold(word) for word in typed.split()}
    found = [text for hit in turn.hits for _, fields in read(hit.chunk) for text in fields]
    seen = all(any(f" {word}" in text for text in found) for word in corrections)
    return searched if seen else typed


class SearchQuery(RequestModel):
    """A search in an address. `collection` and `language` may be repeated; both limit what is found."""

    model_config = ConfigDict(strict=False, extra="forbid")

    q: str = Field(description="The query.")
    limit: int | None = Field(None, ge=1, le=50, description="Number of passages.")
    collection: Names = Field([], description="Only pages of this collection; may be repeated.")
    language: Names = Field([], description="Only pages in this language; may be repeated.")
    model: Name = Field("", description="Assistant whose pages are searched.")
    page: PageAddress = None
    as_you_type: bool = Field(default=False, description="The last word may be incomplete.")


@dataclass(frozen=True)
class Search:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """The passages, best first."""
        access = self.service.access(request)
        body = await self.service.read(request, SearchRequest)
        return await self._respond(request, access, body)

    async def get(self, request: Request, query: Annotated[SearchQuery, Query()]) -> Response:
        """The same for a query in the address."""
        values = query.model_dump(include={"limit", "model", "page", "as_you_type"})
        filters = SearchFilters(collections=query.collection, languages=query.language)
        known = (code for code in query.language if code in self.service.settings.languages)
        body = SearchRequest(query=query.q, filters=filters, language=next(known, None), **values)
        return await self._respond(request, self.service.access(request), body)

    async def _respond(self, request: Request, access: Access, body: SearchRequest) -> Response:
        language = self.service.reader_language(request, body.language)
        info = info_of(request)
        info.fields.update(model=body.model)
        assistant = self.service.assistant(access, body.model)

        async def found() -> SearchResult:
            async with self.service.limits.answer():
                return await search_result(assistant, body, info.id, language=language)

        return JsonResponse(await cancel_on_disconnect(request.receive, found()))


async def search_result(
    assistant: Assistant,
    body: SearchRequest,
    id: str,  # noqa: A002  # as Request names it
    *,
    language: str = "",
) -> SearchResult:
    """The body of the response; `language` is that of the client. Raises `RequestError` if the query is empty or too long."""
    query = visible(body.query).strip()
    if not query:
        raise RequestError("query: is empty.", param="query")
    if len(query) > MAX_QUESTION:
        raise RequestError(
            f"query: has {len(query)} characters, but at most {MAX_QUESTION} are allowed. Shorten it.",
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
        "language": after.asked.language,
        "generation": after.generation.info.id,
        "facets": await facets_of(after, assistant),
        "data": rows_of(after),
    }


def router(service: Service) -> APIRouter:
    """The routes of the search."""
    search = Search(service)
    return router_of("Search", (
        ("search", "POST", "/v1/search", search, "Search without a language model", SearchResult, FAILURES,
         {"description": "Returns the passages for a query, with the scores of both searches."} | body_of(SearchRequest)),
        ("search_get", "GET", "/v1/search", search.get, "Search by an address", SearchResult, FAILURES,
         {"description": "The same search for browsers and curl. Only `q` is needed."}),
    ))  # fmt: skip
