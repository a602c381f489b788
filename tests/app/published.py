"""Chunks in an index, each on a page of its own."""

from __future__ import annotations

from app.core.generation import Recipe
from app.core.types import Chunk, Page
from app.index import Store
from app.models.guarded import Embedder


async def publish(store: Store, embedder: Embedder, *chunks: Chunk) -> None:
    """Make a generation of these chunks, which the embedder gives their vectors."""
    vectors = await embedder.embed_passages([chunk.embedded_text for chunk in chunks])
    async with await store.draft(Recipe(embedder.name, await embedder.dimension(), "s", "a")) as draft:
        for chunk, vector in zip(chunks, vectors, strict=True):
            page = Page(chunk.url, chunk.collection, chunk.title, chunk.language, chunk.text, chunk.id)
            await draft.put(page, [chunk], {chunk.id: vector})
        await draft.publish()
