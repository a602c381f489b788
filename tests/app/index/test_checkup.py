"""The check of an index: its result is valid for a while, and it keeps no generation in memory."""

import gc

from app.index import run_history
from app.index.embedded.generation import EmbeddedGeneration
from app.index.embedded.store import EmbeddedStore
from app.index.guarded import GuardedGeneration, GuardedStore
from tests.app.index.embedded.pages import publish


def generations():
    """All that are in memory, also those of other tests."""
    gc.collect()
    return [one for one in gc.get_objects() if type(one) is GuardedGeneration]


async def test_a_result_is_valid_for_a_while_and_keeps_no_generation_alive(tmp_path, monkeypatch):
    searches = []

    async def search(generation, query):
        searches.append(generation.info.id)
        return await found(generation, query)

    found = EmbeddedGeneration.search
    monkeypatch.setattr(EmbeddedGeneration, "search", search)
    monkeypatch.setattr(run_history, "FIRST_WAIT", 60)
    monkeypatch.setattr(run_history, "FRESH", 3600)
    others = set(map(id, generations()))
    store, check = GuardedStore(EmbeddedStore(tmp_path / "index"), "index"), run_history.Checkup()
    for version in (1, 2):
        await publish(store, {1: (f"common v{version}",)})
        for _ in range(3):
            assert await check.problem(await store.live()) == ""
    assert sorted(searches) == [1, 1, 2, 2]  # for a vector and for words
    assert set(map(id, generations())) <= others
    await store.close()
