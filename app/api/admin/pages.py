"""GET /v1/admin/pages and /v1/admin/page: the pages of the live generation, and one with its Markdown and chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from app.api.admin.answer_models import PageBody, PageList, PageRow
from app.api.admin.index import REFUSED
from app.api.admin.queries import PageQuery, PagesQuery, chosen_index, query_of
from app.api.admin.records import chunk_bodies, page_row
from app.api.bodies import JsonResponse
from app.api.runs.route import NO_STORE
from app.api.service import Service
from app.core.errors import RequestError, quoted
from app.index.run_history import as_last_read
from app.text.analysis import fold

FACETS = ("source", "collection", "language", "state", "age")
LONG = ("markdown", "plain", "chunk_ids")


@dataclass(frozen=True)
class IndexedPages:
    """The handlers of the routes."""

    service: Service

    async def list_pages(self, request: Request) -> Response:
        """The pages that match, a part of them at a time, with the number of pages for each value of each filter."""
        self.service.check_admin(request, REFUSED)
        query = query_of(request, PagesQuery)
        index = chosen_index(self.service, query.index)
        live, now = await index.store.live(), datetime.now(UTC)
        rows = [page_row(page, now) for page in await as_last_read(index.store, await live.pages())]
        if query.q:
            rows = [row for row in rows if fold(query.q) in fold(f"{row['url']}\n{row['title']}")]
        found = _sorted([row for row in rows if _matches(row, query)], query.sort)
        end = query.offset + query.limit
        body: PageList = {
            "object": "list",
            "index": index.name,
            "generation": live.info.id,
            "pages": live.info.pages,
            "total": len(found),
            "counts": {name: _counts(rows, query, name) for name in FACETS},
            "data": found[query.offset : end],
            "next": _address(request, end) if end < len(found) else None,
        }
        return JsonResponse(body, headers=NO_STORE)

    async def get_page(self, request: Request) -> Response:
        """One page."""
        self.service.check_admin(request, REFUSED)
        query = query_of(request, PageQuery)
        index = chosen_index(self.service, query.index)
        live = await index.store.live()
        page = await live.page(query.url) or await live.page(query.url.partition("#")[0])
        if page is None:
            raise RequestError(
                f"url: {quoted(query.url)} isn't indexed. /v1/admin/pages?q=TEXT lists the pages with this text in their address.",
                param="url",
                code="page_not_found",
            )
        (page,) = await as_last_read(index.store, [page])
        chunks = await live.fetch(page.chunk_ids)
        body: PageBody = {
            "object": "page",
            "index": index.name,
            "generation": live.info.id,
            "page": page_row(page, datetime.now(UTC)),
            "record": {name: value for name, value in asdict(page).items() if name not in LONG},
            "markdown": page.markdown,
            "chunks": chunk_bodies(chunks, page.markdown),
        }
        return JsonResponse(body, headers=NO_STORE)


def _matches(row: PageRow, query: PagesQuery, without: str = "") -> bool:
    """Whether the page matches all filters but this one."""
    values = cast("dict[str, Any]", row)
    wanted = {name: getattr(query, name) for name in FACETS if name != without}
    return all(value is None or values[name] == value for name, value in wanted.items())


def _counts(rows: Sequence[PageRow], query: PagesQuery, name: str) -> dict[str, int]:
    return dict(Counter(cast("dict[str, Any]", row)[name] for row in rows if _matches(row, query, name)).most_common())


def _sorted(rows: Sequence[PageRow], order: str) -> list[PageRow]:
    name = order.removeprefix("-")
    return sorted(rows, key=lambda row: cast("dict[str, Any]", row)[name], reverse=order.startswith("-"))


def _address(request: Request, offset: int) -> str:
    """The address of this list from `offset` on, relative to the root of the service."""
    return f"v1/admin/pages?{urlencode({**request.query_params, 'offset': offset})}"
