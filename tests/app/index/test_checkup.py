"""The check of an index: its result is valid for a while, and it keeps no generation in memory."""

import asyncio
import gc

from app.core.errors import IndexDamaged
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
            assert (await check.of(await store.live())).problem == ""
    assert sorted(searches) == [1, 1, 2, 2]  # for a vector and for words
    assert set(map(id, generations())) <= others
    await store.close()


async def test_readers_of_two_generations_at_once_are_told_each_of_its_own(tmp_path, monkeypatch):
    """The second is damaged, and its check is still at work when a reader of the first one comes."""
    begun, goes_on, found = asyncio.Event(), asyncio.Event(), EmbeddedGeneration.search

    async def search(generation, query):
        if generation.info.id == 2:
            begun.set()
            await goes_on.wait()
            raise IndexDamaged("rows of the second are gone")
        return await found(generation, query)

    monkeypatch.setattr(EmbeddedGeneration, "search", search)
    monkeypatch.setattr(run_history, "FIRST_WAIT", 60)
    store, check, lives = GuardedStore(EmbeddedStore(tmp_path / "index"), "index"), run_history.Checkup(), []
    for version in (1, 2):
        await publish(store, {1: (f"common v{version}",)})
        lives.append(await store.live())
    second = asyncio.create_task(check.of(lives[1]))
    await begun.wait()
    first = await check.of(lives[0])
    goes_on.set()
    assert "rows of the second are gone" in (await second).problem
    assert first.problem == ""
    await store.close()
