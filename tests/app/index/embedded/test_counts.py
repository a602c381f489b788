"""Word counts, which a run publishes, and which the first question reads for all."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from tests.app.index.embedded.pages import publish


def forget_words(folder):
    """Damage the words of the published index, so that they are counted again."""
    for file in (folder / "index").glob("words_*.lance/data/*"):
        file.unlink()


async def test_no_reader_waits_until_words_are_counted(store, tmp_path, monkeypatch):
    """The run counts them. Only where theirs are damaged, the first reader's service does."""
    pages = {1: ("common first",), 2: ("common second", "common third")}
    await publish(store, pages)
    with monkeypatch.context() as reading:
        reading.setattr("app.index.embedded.generation.count_words", lambda _: 1 / 0)
        live = await store.live()
        published = await live.frequencies(["common", "second", "none"])
        assert published == {"common": 3, "second": 1, "none": 0}
        assert (await live.vocabulary()).completions("thi", 2) == ("third",)
        await publish(store, {2: ("common second",)})
        assert await (await store.live()).frequencies(["common", "third"]) == {"common": 2, "third": 0}
    await publish(store, pages)
    forget_words(tmp_path)
    assert await (await store.live()).frequencies(list(published)) == published


async def test_a_cancelled_first_question_leaves_the_counts_of_words_right(store, tmp_path, monkeypatch):
    """Cancelled at any moment: the words are counted only once, and a failure isn't kept."""
    words = " ".join(f"word{n}" for n in range(3000))
    monkeypatch.setattr("app.index.embedded.draft.BATCH", 4)  # several files, so several moments to be cancelled at
    await publish(store, dict.fromkeys(range(16), (words,)))
    forget_words(tmp_path)
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
