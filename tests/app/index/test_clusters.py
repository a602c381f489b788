"""Search in two stages: how many clusters there are, and that a small index is searched by them too where that is set."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.core.generation import Recipe
from app.core.types import Chunk, Page, Query
from app.index.embedded.store import EmbeddedStore
from app.index.embedded.tables import Clusters


def test_how_many_there_are_and_are_searched() -> None:
    """At least ten chunks are in each; at least one is searched."""
    for clusters, rows, count, probes in (
        (Clusters(), 19_999, 0, 1),
        (Clusters(), 20_000, 1131, 226),
        (Clusters(500), 10_000, 500, 100),
        (Clusters(500, 10), 10_000, 500, 50),
        (Clusters(500), 600, 60, 12),
        (Clusters(500), 19, 0, 1),
        (Clusters(2, 1), 100, 2, 1),
    ):
        assert (clusters.of(rows), clusters.probes(rows)) == (count, probes)


async def grown(
    store: EmbeddedStore, chunks: Sequence[Chunk], vectors: Mapping[str, Sequence[float]]
) -> tuple[int, str]:
    """One run with these chunks: the number of the generation, and the name of the index of its vectors."""
    async with await store.draft(Recipe("e", 8, "s", "a")) as draft:
        if chunks:
            await draft.put(Page("https://x/p", "docs", "P", "en", "", "h"), chunks, vectors)
        published = await draft.publish()
    indices = await (await store.live()).chunks.list_indices()
    return published.id, "".join(index.name for index in indices if index.columns == ["vector"])


async def test_an_index_is_clustered_when_it_outgrows_what_it_has(tmp_path: Path) -> None:
    """In the first run after that, even if no page changed; then again when it is four times as large."""
    rng, small = random.Random(5), EmbeddedStore(tmp_path / "index")
    chunks = [Chunk(f"c{i}", "docs", "https://x/p", i, f"text {i}", "en", "P") for i in range(450)]
    vectors = {chunk.id: [rng.gauss(0, 1) for _ in range(8)] for chunk in chunks}
    assert await grown(small, chunks[:100], vectors) == (1, "")
    await small.close()
    store = EmbeddedStore(tmp_path / "index", clusters=Clusters(1000))  # a tenth of the rows
    runs = [await grown(store, part, vectors) for part in ((), (), chunks[:150], chunks, ())]
    assert runs == [(2, "vector_10"), (2, "vector_10"), (3, "vector_10"), (4, "vector_45"), (4, "vector_45")]
    found = (await (await store.live()).search(Query((), vectors["c449"], depth=5))).vector
    assert found[0].id == "c449"
    await store.close()


async def test_only_the_nearest_clusters_are_searched(tmp_path: Path) -> None:
    """With all of them it is the exhaustive search, with one it has a part of it, and exact ignores them."""
    rng = random.Random(5)
    store = EmbeddedStore(tmp_path / "index", clusters=Clusters(20, 100))
    chunks = [Chunk(f"c{i}", "docs", "https://x/p", i, f"text {i}", "en", "P") for i in range(400)]
    vectors = {chunk.id: [rng.gauss(0, 1) for _ in range(8)] for chunk in chunks}
    async with await store.draft(Recipe("e", 8, "s", "a")) as draft:
        await draft.put(Page("https://x/p", "docs", "P", "en", "", "h"), chunks, vectors)
        await draft.publish()
    query = Query((), [rng.gauss(0, 1) for _ in range(8)], depth=400)
    everything = (await (await store.live()).search(replace(query, exact=True))).vector
    assert len(everything) == 400
    assert {c.id for c in (await (await store.live()).search(query)).vector} == {c.id for c in everything}
    await store.close()
    few = EmbeddedStore(tmp_path / "index", clusters=Clusters(20, 5))
    part = (await (await few.live()).search(query)).vector
    assert 1 < len(part) < 200
    assert len((await (await few.live()).search(replace(query, exact=True))).vector) == 400
    await few.close()
