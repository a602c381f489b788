"""Indexes for tests: one on each store, filled without a site, and those of our documentation."""

import asyncio
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.core.generation import GenerationInfo, Recipe
from app.core.settings import Settings
from app.core.types import Chunk, Page, Section
from app.index import open_store
from app.routes.html_pages import find_docs
from eval.questions.own_docs import indexed_docs
from tests.fakes import WORDS, WORDS_SIZE
from tests.opensearch import opensearch_address, own_name

RECIPE = Recipe(embedder=WORDS, dimension=WORDS_SIZE, splitter="s-1", analyzer="a-1")
SITE = "https://docs.example.org"


def page_with(path: str, *texts: str, title: str = "A page", **fields: object) -> tuple[Page, tuple[Chunk, ...]]:
    """A page and a chunk for each text, each in a section of its own."""
    url, language = SITE + path, str(fields.pop("language", "en"))
    collection = str(fields.pop("collection", "docs"))
    parts = ((Section(0, (title, f"Part {i}"), f"part-{i}" if i else ""),) for i in range(len(texts)))
    chunks = tuple(
        Chunk(f"{path}:{text[:20]}", collection, url, i, text, language, title, part)
        for i, (text, part) in enumerate(zip(texts, parts, strict=True))
    )
    known = {"etag": '"e1"', "last_ok": "2026-02-03T04:05:06+00:00", "modified": "2026-01-02"}
    digest = f"{zlib.crc32(repr(texts).encode()):08x}"
    page = Page(url, collection, title, language, "\n\n".join(texts), digest)
    return Page.of_facts({**page.facts, **known, **fields}), chunks


@dataclass(frozen=True)
class Index:
    """The index of the commands under test, which DOCS_STORE names."""

    address: str

    def publish(self, *pages: tuple[Page, Sequence[Chunk]], recipe: Recipe = RECIPE) -> GenerationInfo:
        """One more generation, of these pages only."""
        return asyncio.run(self._publish(pages, recipe))

    async def _publish(self, pages: Sequence[tuple[Page, Sequence[Chunk]]], recipe: Recipe) -> GenerationInfo:
        store = open_store(Settings.load(None, store=self.address))
        try:
            async with await store.draft(recipe) as draft:
                for url in await draft.page_states():
                    await draft.remove(url)
                for page, chunks in pages:
                    vectors: Mapping[str, list[float]] = {
                        chunk.id: [1.0, len(chunk.text), *[0.0] * (recipe.dimension - 2)] for chunk in chunks
                    }
                    await draft.put(page, chunks, vectors)
                return await draft.publish()
        finally:
            await store.close()


@contextmanager
def stored(kind: str, directory: Path) -> Iterator[Index]:
    """An empty index, removed at the end; the test is skipped if its server isn't there."""
    if kind == "embedded":
        yield Index(str(directory / "index"))
        return
    with own_name() as name:
        yield Index(f"{opensearch_address().replace('http', 'opensearch', 1)}/{name}")


def copied_docs(folder: Path, *names: str) -> Path:
    """The folder, with these pages of our documentation in both languages."""
    for language in ("en", "cs"):
        (folder / language).mkdir(parents=True)
        for name in names:
            shutil.copy(find_docs() / language / f"{name}.md", folder / language)
    return folder


async def index_docs(settings: Settings, store: Path, folder: Path | None = None) -> None:
    """Makes an index of our documentation, or of a folder of it, in the directory `store`, for nobody to write to."""
    async with indexed_docs(settings, folder) as own:
        shutil.copytree(own.store, store)
