"""Tests of the vectors that a generation keeps in memory."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from app.core.generation import Recipe
from app.core.types import Chunk, Filters, Page, Query
from app.index.embedded import generation as embedded_vectors
from app.index.embedded.generation import Vectors
from app.index.embedded.store import EmbeddedStore

DIMENSION = 64


def units(count: int) -> np.ndarray:
    """Random vectors of length 1, always the same."""
    values = np.random.default_rng(5).normal(size=(count, DIMENSION)).astype(np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def test_rounded_vectors_find_what_exact_ones_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least .97 of the nearest 50 of 5,000, in a quarter of the memory; their cosines differ by less than .005."""
    values, rows = units(5000), np.arange(5000, dtype=np.uint64)[::-1] << np.uint64(20)
    made = []
    for exact_bytes in (embedded_vectors.EXACT_BYTES, 0):
        monkeypatch.setattr(embedded_vectors, "EXACT_BYTES", exact_bytes)
        made.append(Vectors(len(values), DIMENSION))
        for first in range(0, len(values), 1500):
            made[-1].add(rows[first : first + 1500], values[first : first + 1500])
    exact, rounded = made
    shares = []
    for question in units(5100)[5000:]:
        wanted, cosines = exact.nearest(question, 50)
        assert set(wanted) == {rows[place] for place in np.argsort(-(values @ question))[:50]}
        cosine = dict(zip(wanted, cosines, strict=True))
        found = dict(zip(*rounded.nearest(question, 50), strict=True))
        shares.append(len(found.keys() & cosine.keys()) / 50)
        assert all(abs(found[row] - cosine[row]) < 0.005 for row in found.keys() & cosine.keys())
        within = rows[100:130]
        assert set(rounded.nearest(question, 50, within)[0]) == set(within)
        assert len(rounded.nearest(question, 50, rows[:0])[0]) == 0
    assert np.mean(shares) >= 0.97
    assert rounded.nearest(np.zeros(DIMENSION, np.float32), 5)[1].tolist() == [0.0] * 5


async def test_vectors_in_memory_find_what_lancedb_finds(tmp_path: Path) -> None:
    """With filters and without, in an index of several runs with removed chunks."""
    rng, store = random.Random(5), EmbeddedStore(tmp_path / "index")
    for run in (1, 2):
        async with await store.draft(Recipe("e", 8, "s", "a")) as draft:
            for number in range(12):
                language = ("en", "cs")[number % 2]
                page = Page(f"https://x/{number}", "docs", "P", language, "", f"{run}")
                named = [f"c{number}-{i}-{run if number < 5 else 0}" for i in range(5)]
                chunks = [Chunk(id_, "docs", page.url, i, id_, language, "P") for i, id_ in enumerate(named)]
                await draft.put(page, chunks, {id_: [rng.gauss(0, 1) for _ in range(8)] for id_ in named})
            await draft.remove("https://x/11")
            await draft.publish()
    live, vector = await store.live(), [rng.gauss(0, 1) for _ in range(8)]
    for filters in (Filters(), Filters(languages=("cs",)), Filters(url_prefixes=("https://x/1",)), Filters(("other",))):
        asked = Query((), vector, filters=filters, depth=7)
        exact = (await live.search(Query((), vector, filters=filters, depth=7, exact=True))).vector
        assert len(exact) == (0 if filters.collections else 7)
        found = (await live.search(asked)).vector
        assert [one.id for one in found] == [one.id for one in exact]
        assert [one.score for one in found] == pytest.approx([one.score for one in exact], abs=1e-6)
    await store.close()
