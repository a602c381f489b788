"""Pages for the embedded store, and what lies in its directory."""

from __future__ import annotations

import json
from pathlib import Path

from app.core.generation import Recipe
from app.core.types import Chunk, LexicalText, Page, Query

RECIPE = Recipe(embedder="test", dimension=4, splitter="test", analyzer="test")


def page_and_chunks(number: int, *texts: str) -> tuple[Page, tuple[Chunk, ...]]:
    url = f"https://docs.example.org/{number}"
    chunks = tuple(Chunk(f"{number} {text}", "docs", url, i, text, "en", "Title") for i, text in enumerate(texts))
    return Page(url, "docs", "Title", "en", "\n".join(texts), "hash"), chunks


async def put(draft, number: int, *texts: str) -> None:
    page, chunks = page_and_chunks(number, *texts)
    await draft.put(page, chunks, {c.id: [1.0, 0.0, 0.0, 0.0] for c in await draft.missing(chunks)})


async def publish(store, pages: dict[int, tuple[str, ...]], recipe: Recipe = RECIPE):
    async with await store.draft(recipe) as draft:
        for number, texts in pages.items():
            await put(draft, number, *texts)
        return await draft.publish()


async def texts_of(generation, question: str = "common") -> set[str]:
    query = Query(texts=(LexicalText("en", question),), vector=[1.0, 0.0, 0.0, 0.0], depth=5000)
    legs = await generation.search(query)
    lexical = {chunk.text for chunk in await generation.fetch([c.id for c in legs.lexical])}
    vector = {chunk.text for chunk in await generation.fetch([c.id for c in legs.vector])}
    assert lexical == vector
    return lexical


def tables(directory: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder in directory.glob("*.lance"):
        found.setdefault(folder.stem.partition("_")[0], set()).add(folder.stem)
    return found


def pointer(directory: Path) -> dict:
    return json.loads((directory / "index.json").read_text())
