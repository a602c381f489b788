"""Pages of our own documentation in an index, with the embedding model of the tests."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from app.core.generation import Recipe
from app.core.settings import Settings
from app.core.types import Chunk, Derived, Page, Section
from app.index import open_store
from app.models import open_embedder

DOCS = Path(__file__).parents[2] / "docs"
SITE = "https://docs.example.org"
NAMES = ("clients", "evaluate", "indexing", "languages", "security", "start")
HEADING = re.compile(r"^##+ (.*?) \{#([\w-]+)\}$", re.MULTILINE)


def page_with_chunks(language: str, name: str) -> tuple[Page, list[Chunk]]:
    """A page with a chunk for each section; the pages of a name are translations of each other."""
    text = (DOCS / language / f"{name}.md").read_text("utf-8").partition("\n# ")[2]
    title, _, body = text.partition("\n")
    _, *parts = HEADING.split(body)
    url = f"{SITE}/{language}/{name}"
    chunks = [
        Chunk(
            hashlib.sha256(f"{url}{anchor}".encode()).hexdigest()[:24], language, url, position, f"## {heading}\n\n{text.strip()[:1500]}",
            language, title, (Section(0, (title, heading), anchor),), modified="2026-03-04",
        )
        for position, (heading, anchor, text) in enumerate(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
    ]  # fmt: skip
    page = Page(
        url,
        language,
        title,
        language,
        body,
        hashlib.sha256(text.encode()).hexdigest(),
        derived=Derived(translation_set=name),
    )
    return page, chunks


async def publish(address: str) -> None:
    """Index the pages at this DOCS_STORE."""
    settings = Settings.load(None, store=address)
    embedder, store = open_embedder(settings), open_store(settings)
    recipe = Recipe(embedder.name, await embedder.dimension(), splitter="sections", analyzer="1")
    async with await store.draft(recipe) as draft:
        for language in ("cs", "en"):
            for name in NAMES:
                page, chunks = page_with_chunks(language, name)
                vectors = await embedder.embed_passages([chunk.embedded_text for chunk in chunks])
                await draft.put(page, chunks, dict(zip([chunk.id for chunk in chunks], vectors, strict=True)))
        await draft.publish()
    await store.close()
