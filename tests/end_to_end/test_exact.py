"""Approximate and exact nearest neighbours on real corpora: the same five, on every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.settings import Settings
from app.core.types import Page, Query
from app.index import open_store as opened
from app.index.protocols import Generation, Store
from app.models.static import StaticEmbedder
from eval.questions.cases import load_cases
from eval.questions.own_docs import indexed_docs, own_set
from ingestion.convert import SourceText, convert
from ingestion.publish.recipe import recipe_for
from ingestion.split import open_splitter
from tests.contract.conftest import open_store, store  # noqa: F401  # fixtures

pytestmark = [pytest.mark.server, pytest.mark.slow]
SAME = 1e-4  # Lucene rounds scores; two chunks this near may change places


async def copied(source: Generation, store: Store, embedder: StaticEmbedder) -> Generation:  # noqa: F811
    """The same chunks in another store."""
    async with await store.draft(source.info.recipe) as draft:
        for page in await source.pages():
            chunks = await source.fetch(page.chunk_ids)
            vectors = await embedder.embed_passages([chunk.embedded_text for chunk in chunks])
            await draft.put(page, chunks, {c.id: v for c, v in zip(chunks, vectors, strict=True)})
        await draft.publish()
    return await store.live()


async def compare(live: Generation, questions: Sequence[str], embedder: StaticEmbedder) -> None:
    for vector in await embedder.embed_queries(questions):
        if any(vector):
            query = Query((), vector, depth=5)
            near, exact = (await live.search(query)).vector, (await live.search(replace(query, exact=True))).vector
            assert [c.score for c in near] == pytest.approx([c.score for c in exact], abs=SAME)
            assert len(exact) == 5


async def test_the_first_five_of_our_documentation_are_the_same(store: Store) -> None:  # noqa: F811
    """Every question of our set, by its vector alone."""
    embedder = StaticEmbedder()
    with own_set() as path:
        questions = [case.question for case in load_cases(path)]
    async with indexed_docs(Settings.load(None)) as own:
        source = opened(own)
        live = await copied(await source.live(), store, embedder)
        await source.close()
        await compare(live, questions, embedder)


async def test_the_first_five_of_another_site_are_the_same(store: Store, shared: Path) -> None:  # noqa: F811
    """The shared corpus with its questions."""
    embedder, settings = StaticEmbedder(), Settings.load(None)
    splitter = open_splitter(settings)
    async with await store.draft(await recipe_for(embedder, settings)) as draft:
        for file in sorted((shared / "eval/corpus").rglob("*.mdx")):
            made = convert(SourceText(f"https://docs.example.org/{file.stem}", file.read_text("utf-8"), "text/mdx"))
            page = Page(
                f"https://docs.example.org/{file.relative_to(shared)}", "docs", made.title, "en", made.markdown, ""
            )
            chunks = splitter.split(page, ())
            vectors = await embedder.embed_passages([chunk.embedded_text for chunk in chunks])
            await draft.put(page, chunks, {c.id: v for c, v in zip(chunks, vectors, strict=True)})
        await draft.publish()
    questions = [case.question for case in load_cases(shared / "eval/questions.jsonl")]
    await compare(await store.live(), questions, embedder)
