"""A generation read through LlamaIndex's stock `OpensearchVectorStore` gives the same candidates as our own requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("llama_index.vector_stores.opensearch", exc_type=ImportError)

from llama_index.vector_stores.opensearch import OpensearchVectorStore

from app.core.errors import StoreError
from app.core.generation import Recipe
from app.core.types import Filters, LexicalText, Query
from app.index.opensearch.store import OpenSearchStore
from app.index.opensearch.vector_store import VectorStoreGeneration
from tests.contract.pages import RECIPE, SITE, axis, chunks_of, page_of

pytestmark = [pytest.mark.opensearch, pytest.mark.server]

SUMMARISED = replace(RECIPE, summaries="prompt-1")
STORAGE = LexicalText("en", "storage quota")
VECTOR = [0.8, 0.1, 0.5, *[0.0] * (RECIPE.dimension - 3)]
QUERIES = (
    Query((STORAGE,), VECTOR),
    Query((STORAGE,)),
    Query((STORAGE,), [0.0] * RECIPE.dimension),
    Query((LexicalText("cs", "kvóta úložiště", 0.5),), VECTOR, language="cs"),
    Query((LexicalText("en", "?"),), VECTOR),
    Query((STORAGE, LexicalText("cs", "úložiště", 0.6)), VECTOR),
    Query((STORAGE,), VECTOR, exact=True),
    Query((STORAGE,), VECTOR, depth=2),
    Query((STORAGE,), VECTOR, filters=Filters(languages=("cs",), collections=("docs",))),
    Query((STORAGE,), VECTOR, filters=Filters(url_prefixes=(f"{SITE}/guide/v1.2",))),
    Query((STORAGE,), VECTOR, filters=Filters(sections=("/guide",), versions=("1.2",))),
    Query((STORAGE,), VECTOR, filters=Filters(versions=("9",))),
)


async def publish(store: OpenSearchStore, recipe: Recipe) -> None:
    """Two generations, the second with a change, so that rows of the first are ended."""
    pages = {
        "/guide/v1.2/storage": "Storage has a quota of 1 TB.",
        "/guide/v2.0/storage": "Storage has no quota.",
        "/guide/network": "The network has no quota.",
        "/cs/guide/storage": "Úložiště má kvótu, storage quota.",
    }
    for change in ({}, {"/guide/network": "The network is fast, its storage is small."}):
        async with await store.draft(recipe) as draft:
            for number, (path, text) in enumerate((pages | change).items()):
                chunks = chunks_of(SITE + path, text, language="cs" if "/cs/" in path else "en")
                vectors = {chunk.id: axis(number) for chunk in chunks}
                summary = {"summary": "about"} if recipe.summaries and number == 2 else {}
                page = page_of(SITE + path, chunks, **summary)
                await draft.put(page, chunks, vectors | ({page.url: axis(0)} if summary else {}))
            await draft.publish()


async def test_it_finds_the_same_candidates(open_store, monkeypatch):
    """Ids, order, scores, dates and versions; with filters, weights, summaries, exactly, and with only one of the legs."""
    asked, stock = [], OpensearchVectorStore.aquery

    async def aquery(self, query):
        asked.append(query.mode.value)
        return await stock(self, query)

    monkeypatch.setattr(OpensearchVectorStore, "aquery", aquery)
    for recipe in (RECIPE, SUMMARISED):
        store = open_store()
        await publish(store, recipe)
        ours = await store.live()
        theirs = VectorStoreGeneration(ours._connection, ours._published)
        for query in QUERIES:
            found = await theirs.search(query)
            assert found == await ours.search(query), query
        both = await ours.search(QUERIES[0])
        assert len(await theirs.fetch([candidate.id for candidate in both.lexical])) == len(both.vector) == 4
    # our own request searches exactly, and for two texts; one query has no words, two have no vector
    assert (asked.count("text_search"), asked.count("default")) == (2 * (len(QUERIES) - 3), 2 * (len(QUERIES) - 4))


async def test_it_makes_no_index_and_raises_our_errors(open_store, http):
    """The stock client would create an index that is missing; a deleted one stays deleted."""
    store = open_store()
    store.generation_class = VectorStoreGeneration
    await publish(store, RECIPE)
    live = await store.live()
    await http.delete(f"/{live._published.chunks}")
    with pytest.raises(StoreError, match="was deleted under the service"):
        await live.search(QUERIES[0])
    assert (await http.head(f"/{live._published.chunks}")).status_code == 404
