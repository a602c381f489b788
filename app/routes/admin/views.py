"""Pages and chunks of the index for operators."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, cast
from urllib.parse import urlencode

import numpy as np
from fastapi import Query as Parameters
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import RequestError, StoreError, quoted
from app.core.types import Chunk, Query, Vector
from app.http.bodies import filled, unstored
from app.index import Generation
from app.index.run_history import as_last_read
from app.index.vocabulary import tokens_of
from app.routes.admin.answer_models import Neighbour, NeighbourList, OneChunkBody, PageBody, PageList, PageRow
from app.routes.admin.index import chunk_bodies, page_row
from app.routes.admin.queries import IndexQuery, NeighboursQuery, PageQuery, PagesQuery, chosen_index
from app.routes.service import Service
from app.text.analysis import analyse, fold

BEGINNING = 200
DUPLICATE = 0.8
"""Share of common words from which two chunks are near duplicates. It doesn't depend on the embedder, as a cosine would."""


async def _chunk(live: Generation, id_: str) -> Chunk:
    found = await live.fetch([id_])
    if not found:
        raise RequestError(
            f"There is no chunk {quoted(id_)} in generation {live.info.id}: its page has changed, or left the index.",
            code="chunk_not_found",
        )
    return found[0]


async def _neighbours(live: Generation, chunk: Chunk, limit: int) -> list[Neighbour]:
    own = (await live.vectors([chunk.id])).get(chunk.id)
    if own is None:
        return []
    # questions and summaries raise the scores of a search, so compare the vectors of the texts themselves
    legs = await live.search(Query(texts=(), vector=own, depth=2 * limit + 1, exact=True))
    near = [candidate.id for candidate in legs.vector if candidate.id != chunk.id]
    vectors = await live.vectors(near)
    ids = sorted(vectors, key=lambda id_: -_cosine(own, vectors[id_]))[:limit]
    return [_neighbour(chunk, other, _cosine(own, vectors[other.id])) for other in await live.fetch(ids)]


def _cosine(a: Vector, b: Vector) -> float:
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def _neighbour(chunk: Chunk, other: Chunk, cosine: float) -> Neighbour:
    words, others = set(analyse(chunk.text, chunk.language)), set(analyse(other.text, other.language))
    overlap = len(words & others) / max(len(words | others), 1)
    line = " ".join(other.text.split())
    return filled(
        Neighbour,
        other,
        path=other.heading_path,
        begins=line if len(line) <= BEGINNING else f"{line[:BEGINNING]}…",
        cosine=round(cosine, 4),
        overlap=round(overlap, 3),
        near_duplicate=overlap >= DUPLICATE,
    )


FACETS = ("source", "collection", "language", "state", "age")
LONG = ("markdown", "chunk_ids", "counterparts")


@dataclass(frozen=True)
class IndexedPages:
    """The handlers of the routes of pages and chunks."""

    service: Service

    async def list_pages(self, request: Request, query: Annotated[PagesQuery, Parameters()]) -> Response:
        """The pages that match, a part of them at a time, with the number of pages for each value of each filter."""
        index = chosen_index(self.service, query.index)
        live, now = await index.store.live(), datetime.now(UTC)
        rows = [page_row(page, now) for page in await as_last_read(index.store, await live.pages())]
        if query.q:
            rows = [row for row in rows if fold(query.q) in fold(f"{row['url']}\n{row['title']}")]
        found = [row for row in rows if _matches(row, query)]
        order, backwards = query.sort.removeprefix("-"), query.sort.startswith("-")
        found.sort(key=lambda row: cast("dict[str, Any]", row)[order], reverse=backwards)
        end = query.offset + query.limit
        following = f"v1/admin/pages?{urlencode({**request.query_params, 'offset': end})}"
        body: PageList = {
            "object": "list",
            "index": index.name,
            "generation": live.info.id,
            "pages": live.info.pages,
            "total": len(found),
            "counts": {name: _counts(rows, query, name) for name in FACETS},
            "data": found[query.offset : end],
            "next": following if end < len(found) else None,
        }
        return unstored(body)

    async def get_page(self, query: Annotated[PageQuery, Parameters()]) -> Response:
        """One page."""
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
        chunks = await live.fetch(page.derived.chunk_ids)
        body: PageBody = {
            "object": "page",
            "index": index.name,
            "generation": live.info.id,
            "page": page_row(page, datetime.now(UTC)),
            "record": {name: value for name, value in page.facts.items() if name not in LONG},
            "markdown": page.markdown,
            "chunks": chunk_bodies(chunks, page.markdown),
        }
        return unstored(body)

    async def get_chunk(self, id: str, query: Annotated[IndexQuery, Parameters()]) -> Response:  # noqa: A002  # as in the path
        """One chunk with its page."""
        index = chosen_index(self.service, query.index)
        live = await index.store.live()
        chunk = await _chunk(live, id)
        page = await live.page(chunk.url)
        if page is None:
            raise StoreError(f"The index has the chunk {chunk.id} of {chunk.url}, but not that page: build it again.")
        (page,) = await as_last_read(index.store, [page])
        chunks = await live.fetch(page.derived.chunk_ids)
        body: OneChunkBody = {
            "object": "chunk",
            "index": index.name,
            "generation": live.info.id,
            "chunk": next(one for one in chunk_bodies(chunks, page.markdown) if one["id"] == chunk.id),
            "embedded_text": chunk.embedded_text,
            "tokens": tokens_of(chunk),
            "page": page_row(page, datetime.now(UTC)),
            "chunks_of_page": page.derived.chunk_ids,
        }
        return unstored(body)

    async def get_neighbours(self, id: str, query: Annotated[NeighboursQuery, Parameters()]) -> Response:  # noqa: A002
        """The nearest chunks."""
        index = chosen_index(self.service, query.index)
        live = await index.store.live()
        chunk = await _chunk(live, id)
        body: NeighbourList = {
            "object": "list",
            "index": index.name,
            "generation": live.info.id,
            "chunk": chunk.id,
            "data": await _neighbours(live, chunk, query.limit),
        }
        return unstored(body)


def _matches(row: PageRow, query: PagesQuery, without: str = "") -> bool:
    """True if the page matches all filters but this one."""
    values = cast("dict[str, Any]", row)
    wanted = {name: getattr(query, name) for name in FACETS if name != without}
    return all(value is None or values[name] == value for name, value in wanted.items())


def _counts(rows: Sequence[PageRow], query: PagesQuery, name: str) -> dict[str, int]:
    return dict(Counter(cast("dict[str, Any]", row)[name] for row in rows if _matches(row, query, name)).most_common())
