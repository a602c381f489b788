"""GET /v1/admin/chunks/ID and its neighbours: a chunk as it is searched, and the chunks that are near to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from app.api.admin.answer_models import Neighbour, NeighbourList, OneChunkBody
from app.api.admin.index import REFUSED
from app.api.admin.queries import IndexQuery, NeighboursQuery, chosen_index, query_of
from app.api.admin.records import chunk_bodies, page_row
from app.api.bodies import JsonResponse
from app.api.runs.route import NO_STORE
from app.api.service import Service
from app.core.errors import RequestError, StoreError, quoted
from app.core.types import Chunk, Query, Vector
from app.index import Generation
from app.index.run_history import as_last_read
from app.index.tokens import tokens_of
from app.text.analysis import analyse

BEGINNING = 200
DUPLICATE = 0.8
"""Share of common words from which two chunks are near duplicates. It doesn't depend on the embedder, as a cosine would."""


@dataclass(frozen=True)
class IndexedChunks:
    """The handlers of the routes."""

    service: Service

    async def get_chunk(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """One chunk with its page."""
        self.service.check_admin(request, REFUSED)
        index = chosen_index(self.service, query_of(request, IndexQuery).index)
        live = await index.store.live()
        chunk = await _chunk(live, id)
        page = await live.page(chunk.url)
        if page is None:
            raise StoreError(f"The index has the chunk {chunk.id} of {chunk.url}, but not that page: build it again.")
        (page,) = await as_last_read(index.store, [page])
        chunks = await live.fetch(page.chunk_ids)
        body: OneChunkBody = {
            "object": "chunk",
            "index": index.name,
            "generation": live.info.id,
            "chunk": next(one for one in chunk_bodies(chunks, page.markdown) if one["id"] == chunk.id),
            "embedded_text": chunk.embedded_text,
            "tokens": tokens_of(chunk),
            "page": page_row(page, datetime.now(UTC)),
            "chunks_of_page": page.chunk_ids,
        }
        return JsonResponse(body, headers=NO_STORE)

    async def get_neighbours(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """The nearest chunks."""
        self.service.check_admin(request, REFUSED)
        query = query_of(request, NeighboursQuery)
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
        return JsonResponse(body, headers=NO_STORE)


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
    return {
        "id": other.id,
        "url": other.url,
        "title": other.title,
        "path": other.heading_path,
        "language": other.language,
        "collection": other.collection,
        "begins": line if len(line) <= BEGINNING else f"{line[:BEGINNING]}…",
        "cosine": round(cosine, 4),
        "overlap": round(overlap, 3),
        "near_duplicate": overlap >= DUPLICATE,
    }
