"""Word counts, which the first question computes for all."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from app.core.errors import StoreError
from tests.app.index.embedded.pages import publish


async def test_a_cancelled_first_question_leaves_the_counts_of_words_right(store, monkeypatch):
    """Cancelled at any moment: the words are counted only once, and a failure isn't kept."""
    words = " ".join(f"word{n}" for n in range(3000))
    monkeypatch.setattr("app.index.embedded.draft.BATCH", 4)  # several files, so several moments to be cancelled at
    await publish(store, dict.fromkeys(range(16), (words,)))
    live = await store.live()
    began = time.perf_counter()
    assert (await live.frequencies(["word7"])) == {"word7": 16}
    whole = time.perf_counter() - began
    for part in range(1, 12):
        await store.close()
        live = await store.live()
        first = asyncio.create_task(live.frequencies(["word7"]))
        await asyncio.sleep(whole * part / 12)
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        assert await live.frequencies(["word7", "word8", "none"]) == {"word7": 16, "word8": 16, "none": 0}, part


async def test_counts_that_failed_are_made_anew(store, monkeypatch):
    await publish(store, {1: ("common word",)})
    live = await store.live()
    with monkeypatch.context() as broken:
        broken.setattr(type(live.chunks), "query", lambda _: 1 / 0)
        with suppress(ZeroDivisionError, StoreError):
            await live.frequencies(["common"])
    assert await live.frequencies(["common"]) == {"common": 1}
