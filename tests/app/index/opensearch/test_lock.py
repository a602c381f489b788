"""One writer at a time on OpenSearch, whatever becomes of the one before."""

from __future__ import annotations

import asyncio
import os

import pytest

from app.core.errors import NoIndex, StoreBusy
from tests.app.index.opensearch.rows import RECIPE, found, publish, put


@pytest.mark.opensearch
@pytest.mark.server
class TestLock:
    async def test_a_busy_index_says_who_and_since_when(self, store, open_store):
        async with await store.draft(RECIPE):
            with pytest.raises(StoreBusy, match=rf"process {os.getpid()} on .+, since 20\d\d-.*"):
                await open_store().draft(RECIPE)
            with pytest.raises(NoIndex):
                await store.live()
        async with await open_store().draft(RECIPE):
            pass

    async def test_a_lock_without_sign_of_life_expires(self, open_store, monkeypatch):
        """The writer that lost it in its sleep is refused, and what it wrote is not published."""
        sleeper = open_store(lock_seconds=2)
        await publish(sleeper, "kept")
        async with await sleeper.draft(RECIPE) as asleep:
            await put(asleep, "/z", "of the sleeper")
            await asleep._batch.flush()
            asleep._lock._heart.cancel()
            await asyncio.sleep(2.5)
            await publish(open_store(), "kept", "new")
            await put(asleep, "/y", "too late")
            with pytest.raises(StoreBusy, match="went to another writer"):
                await asleep.publish()
        assert sorted(await found(sleeper, "kept new sleeper late")) == ["kept", "new"]

    async def test_a_writer_that_died_before_the_pointer_moved_published_nothing(self, store, open_store, monkeypatch):
        """The catalog already lists the new generation at that moment; the alias decides."""
        first = await publish(store, "one")

        async def die(*_args) -> None:
            raise KeyboardInterrupt

        draft = await store.draft(RECIPE)
        await put(draft, "/0", "two")
        with monkeypatch.context() as patch:
            patch.setattr(draft._catalog, "point", die)
            with pytest.raises(KeyboardInterrupt):
                await draft.publish()
        await draft._lock.release()
        reader = open_store()
        assert (await reader.live()).info == first
        assert await reader.generations() == (first,)
        second = await publish(reader, "three")
        assert second.id > first.id + 1
        assert await found(store, "one two three") == ["three"]
        assert await reader.rollback() == first
        assert await found(reader, "one two three") == ["one"]
