"""One chunk a page: what is written to an index and found in it again."""

from __future__ import annotations

from app.core.generation import Recipe
from app.core.types import Chunk, LexicalText, Page, Query
from app.index.opensearch.store import OpenSearchStore

RECIPE = Recipe(embedder="axes", dimension=4, splitter="none", analyzer="1")
SITE = "https://docs.example.org"


def name_of(store: OpenSearchStore) -> str:
    return store._catalog.name


def page(path: str, text: str, **values) -> tuple[Page, tuple[Chunk, ...]]:
    url = SITE + path
    known = {"language": "en", "title": "A page", "position": 0} | values
    chunk = Chunk(id=f"{abs(hash((url, text))):x}", collection="docs", url=url, text=text, **known)
    return Page(url, "docs", chunk.title, chunk.language, text, "hash"), (chunk,)


async def put(draft, path: str, text: str, **values) -> None:
    record, chunks = page(path, text, **values)
    await draft.put(record, chunks, {c.id: [1.0, 2.0, 3.0, 4.0] for c in chunks})


async def publish(store: OpenSearchStore, *texts: str, recipe: Recipe = RECIPE):
    async with await store.draft(recipe) as draft:
        for number, text in enumerate(texts):
            await put(draft, f"/{number}", text)
        return await draft.publish()


async def found(store: OpenSearchStore, text: str, language: str = "en") -> list[str]:
    live = await store.live()
    legs = await live.search(Query(texts=(LexicalText(language, text),)))
    return [chunk.text for chunk in await live.fetch([c.id for c in legs.lexical])]
