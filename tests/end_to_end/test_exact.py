"""Approximate and exact nearest neighbours on a real corpus: the same five, on every store."""

from dataclasses import replace

import pytest

from app.core.settings import Settings
from app.core.types import Query
from app.index import open_store as opened
from app.index.protocols import Generation, Store
from app.models import Embedder, open_embedder
from eval.questions.cases import load_cases
from eval.questions.own_docs import own_set
from tests.contract.conftest import open_store, store  # noqa: F401  # fixtures

pytestmark = [pytest.mark.server, pytest.mark.slow]
SAME = 1e-4  # Lucene rounds scores; two chunks this near may change places


async def copied(source: Generation, store: Store, embedder: Embedder) -> Generation:  # noqa: F811
    """The same chunks in another store."""
    async with await store.draft(source.info.recipe) as draft:
        for page in await source.pages():
            chunks = await source.fetch(page.derived.chunk_ids)
            vectors = await embedder.embed_passages([chunk.embedded_text for chunk in chunks])
            await draft.put(page, chunks, {c.id: v for c, v in zip(chunks, vectors, strict=True)})
        await draft.publish()
    return await store.live()


async def test_the_first_five_of_our_documentation_are_the_same(own_docs: Settings, store: Store) -> None:  # noqa: F811
    """Every question of our set, by its vector alone."""
    embedder = open_embedder(Settings.load(None))
    with own_set() as path:
        questions = [case.question for case in load_cases(path)]
    source = opened(own_docs)
    live = await copied(await source.live(), store, embedder)
    await source.close()
    for vector in filter(any, await embedder.embed_queries(questions)):
        query = Query((), vector, depth=5)
        near, exact = (await live.search(query)).vector, (await live.search(replace(query, exact=True))).vector
        assert [c.score for c in near] == pytest.approx([c.score for c in exact], abs=SAME)
        assert len(exact) == 5
