"""What was read lately is read once, from the generation that was asked for last only, in bounded memory."""

from __future__ import annotations

from dataclasses import replace

from app.core.generation import GenerationInfo, Recipe
from app.core.types import PlainText
from app.index.embedded.generation import EmbeddedGeneration
from app.index.embedded.store import EmbeddedStore
from app.index.guarded import GuardedStore, Recent, size_of_text
from tests.contract.pages import publish


def noted(monkeypatch, name):
    """What the store is asked for by this method, call by call."""
    asked = list[list[str]]()
    read = getattr(EmbeddedGeneration, name)

    async def noting(self, keys):
        asked.append(list(keys))
        return await read(self, keys)

    monkeypatch.setattr(EmbeddedGeneration, name, noting)
    return asked


FIRST = GenerationInfo(1, Recipe("e", 2, "s", "a"), "2026-01-01", ("en",), 1, 1)


async def test_values_are_read_once_per_generation_and_the_oldest_make_room_for_new_ones():
    recent, asked = Recent[PlainText](lambda plain: len(plain.text), most=25), []

    async def read(keys):
        asked.append(list(keys))
        return {key: PlainText(key * 10) for key in keys if key != "unknown"}

    assert await recent.of(FIRST, ["a", "b", "unknown"], read) == {"a": PlainText("a" * 10), "b": PlainText("b" * 10)}
    assert await recent.of(FIRST, ["a"], read) == {"a": PlainText("a" * 10)}
    await recent.of(FIRST, ["c"], read)  # 30 bytes: the latest asked ones, a and c, stay
    await recent.of(FIRST, ["a", "b", "c"], read)
    await recent.of(replace(FIRST, id=2), ["b"], read)
    assert asked == [["a", "b", "unknown"], ["c"], ["b"], ["b"]]


async def test_a_generation_that_was_published_meanwhile_does_not_get_values_of_the_one_before():
    recent = Recent[PlainText](size_of_text)

    async def new(keys):
        return {key: PlainText("new") for key in keys}

    async def old(keys):
        await recent.of(replace(FIRST, id=2), ["b"], new)
        return {key: PlainText("old") for key in keys}

    assert await recent.of(FIRST, ["a"], old) == {"a": PlainText("old")}
    assert await recent.of(replace(FIRST, id=2), ["a"], new) == {"a": PlainText("new")}


async def test_units_of_chunks_that_were_found_lately_need_no_store(tmp_path, monkeypatch):
    """Only those that aren't kept are read."""
    asked = noted(monkeypatch, "units")
    store = GuardedStore(EmbeddedStore(tmp_path), "index")
    await publish(store, {"/a": ["red", "blue"], "/b": ["green"]})
    live = await store.live()
    ids = [id_ for page in await live.pages() for id_ in page.derived.chunk_ids]
    some = await live.units(ids[:1])
    assert await (await store.live()).units(ids) == {**some, **await live.units(ids[1:])}
    assert asked == [ids[:1], ids[1:]]


async def test_counts_of_words_that_were_asked_lately_need_no_store(tmp_path, monkeypatch):
    """A new generation has other counts."""
    asked = noted(monkeypatch, "frequencies")
    store = GuardedStore(EmbeddedStore(tmp_path), "index")
    await publish(store, {"/a": ["red", "blue"], "/b": ["red"]})
    assert await (await store.live()).frequencies(["red"]) == {"red": 2}
    assert await (await store.live()).frequencies(["red", "pink"]) == {"red": 2, "pink": 0}
    await publish(store, {"/c": ["red"]})
    assert (await (await store.live()).frequencies(["red"]))["red"] != 2
    assert asked == [["red"], ["pink"], ["red"]]
