"""One search from end to end: both legs, one ranking, and only the winners' texts."""

from __future__ import annotations

from app.core.types import Hit, Legs, Query
from app.index.base import Generation
from app.index.ranking.fuse import fuse


async def search(generation: Generation, query: Query) -> tuple[Hit, ...]:
    """The best hits, best first, at most `query.limit` and `query.per_page` of one page, with their raw scores."""
    return await rank(generation, await generation.search(query), query)


async def rank(generation: Generation, legs: Legs, query: Query) -> tuple[Hit, ...]:
    """The best hits of legs that were searched already."""
    ranked = fuse(legs, query)
    chunks = {chunk.id: chunk for chunk in await generation.fetch([r.id for r in ranked])}
    return tuple(
        Hit(chunk=chunks[r.id], lexical=r.lexical, cosine=r.cosine, fused=r.fused, boost=r.boost)
        for r in ranked
        if r.id in chunks
    )
