"""Pages to fill a store with, and what the legs find of them; vectors without a model."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import replace

from app.core.generation import Recipe
from app.core.types import Chunk, Hit, LexicalText, Page, Query, Vector
from app.index.protocols import Draft, Generation, Store
from app.index.ranking.fuse import rank

DIMENSION = 16
RECIPE = Recipe(embedder="words-16", dimension=DIMENSION, splitter="one-line-1", analyzer="test-1")
SITE = "https://docs.example.org"


def vector(text: str) -> Vector:
    """A bag of hashed words, so that equal texts are near and others aren't."""
    values = [0.0] * DIMENSION
    for word in text.lower().split():
        values[zlib.crc32(word.encode()) % DIMENSION] += 1.0
    length = math.sqrt(sum(v * v for v in values)) or 1.0
    return [v / length for v in values]


def axis(index: int, sign: float = 1.0) -> Vector:
    return [sign if i == index else 0.0 for i in range(DIMENSION)]


def leaning(share: float, towards: int) -> Vector:
    """A vector with this cosine to axis 0."""
    return [share if i == 0 else math.sqrt(1 - share**2) if i == towards else 0.0 for i in range(DIMENSION)]


def chunks_of(url: str, *texts: str, language: str = "en", title: str = "A page", collection: str = "docs"):
    return tuple(
        Chunk(
            id=f"{zlib.crc32(f'{collection} {url} {text}'.encode()):08x}",
            collection=collection,
            url=url,
            position=position,
            text=text,
            language=language,
            title=title,
        )
        for position, text in enumerate(texts)
    )


def page_of(url: str, chunks: Sequence[Chunk] = (), **values) -> Page:
    first = chunks[0] if chunks else None
    known = {
        "collection": first.collection if first else "docs",
        "title": first.title if first else "A page",
        "language": first.language if first else "en",
        "markdown": "\n\n".join(c.text for c in chunks),
        "hash": f"{zlib.crc32(repr(chunks).encode()):08x}",
    }
    return Page.of_facts({"url": url, **known, **values})


async def search(generation: Generation, query: Query) -> tuple[Hit, ...]:
    """The best hits of both legs."""
    return await rank(generation, await generation.search(query), query)


async def only_found_indirectly(generation: Generation, url: str) -> None:
    """Checks that "disk", with axis 0 as its vector, finds this page, and not without what a model wrote."""
    query = Query((LexicalText("en", "disk"),), axis(0), "en", lexical_weight=0.4, vector_weight=0.6)
    assert url in [hit.chunk.url for hit in await search(generation, query)]
    legs = replace(await generation.search(query), indirect={})
    assert url not in [hit.chunk.url for hit in await rank(generation, legs, query)]


async def put(draft: Draft, url: str, *texts: str, **values) -> tuple[Chunk, ...]:
    """Put a page of these texts, with vectors for what is missing only, as ingestion does."""
    chunks = chunks_of(url, *texts, **values)
    await put_chunks(draft, chunks)
    return chunks


async def put_chunks(draft: Draft, chunks: Sequence[Chunk]) -> None:
    missing = await draft.missing(chunks)
    await draft.put(page_of(chunks[0].url, chunks), chunks, {c.id: vector(c.text) for c in missing})


async def publish(store: Store, site: dict[str, Sequence[str]], recipe: Recipe = RECIPE, **values):
    async with await store.draft(recipe) as draft:
        for path, texts in site.items():
            await put(draft, SITE + path, *texts, **values)
        return await draft.publish()


def lexical(text: str, language: str = "en", **values) -> Query:
    return Query(texts=(LexicalText(language, text),), **values)


def semantic(values: Vector, **others) -> Query:
    return Query(texts=(), vector=values, **others)


async def found(generation, text: str, language: str = "en", **values) -> list[str]:
    """Texts of the lexical leg's candidates, best first."""
    legs = await generation.search(lexical(text, language, **values))
    return [chunk.text for chunk in await generation.fetch([c.id for c in legs.lexical])]


async def near(generation, values: Vector, **others) -> list[str]:
    """Texts of the vector leg's candidates, best first."""
    legs = await generation.search(semantic(values, **others))
    return [chunk.text for chunk in await generation.fetch([c.id for c in legs.vector])]
