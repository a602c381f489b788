"""A draft: what it writes, and that one which comes to nothing leaves nothing."""

import asyncio
from dataclasses import replace

import pytest

from app.core.errors import StoreBusy, StoreError
from app.core.types import Derived, Section
from tests.contract.pages import (
    RECIPE,
    SITE,
    chunks_of,
    found,
    near,
    page_of,
    publish,
    put,
    semantic,
    vector,
)

# ---- a draft that comes to nothing -------------------------------------------------------------


@pytest.mark.parametrize("how", ["left", "raised", "cancelled"])
async def test_an_aborted_draft_leaves_nothing(store, how):
    first = await publish(store, {"/a": ["kept one"], "/b": ["kept two"]})

    async def abort() -> None:
        async with await store.draft(RECIPE) as draft:
            await put(draft, SITE + "/a", "aborted text")
            await put(draft, SITE + "/z", "aborted too")
            await draft.remove(SITE + "/b")
            if how == "raised":
                raise RuntimeError("on purpose")
            if how == "cancelled":
                asyncio.current_task().cancel()
                await asyncio.sleep(1)

    if how == "left":
        await abort()
    else:
        with pytest.raises(RuntimeError if how == "raised" else asyncio.CancelledError):
            await asyncio.create_task(abort())
    assert (await store.live()).info == first
    assert await store.generations() == (first,)
    async with await store.draft(RECIPE) as draft:
        assert sorted(await draft.page_states()) == [SITE + "/a", SITE + "/b"]
        aborted = chunks_of(SITE + "/a", "aborted text")
        assert await draft.missing(aborted) == aborted
        await put(draft, SITE + "/c", "kept three")
        await draft.publish()
    live = await store.live()
    assert sorted(await found(live, "kept aborted")) == ["kept one", "kept three", "kept two"]
    assert len(await near(live, vector("kept"))) == 3


async def test_a_second_draft_is_refused_while_one_is_open(store, open_store):
    other = await open_store()
    async with await store.draft(RECIPE) as draft:
        with pytest.raises(StoreBusy):
            await store.draft(RECIPE)
        with pytest.raises(StoreBusy):
            await other.draft(RECIPE)
        await put(draft, SITE + "/a", "one")
        await draft.publish()
    async with await other.draft(RECIPE) as draft:
        assert list(await draft.page_states()) == [SITE + "/a"]


async def test_a_finished_draft_refuses_more(store):
    async with await store.draft(RECIPE) as published:
        await put(published, SITE + "/a", "one")
        await published.publish()
        with pytest.raises(StoreError):
            await put(published, SITE + "/b", "two")
        with pytest.raises(StoreError):
            await published.publish()
    async with await store.draft(RECIPE) as left:
        pass
    with pytest.raises(StoreError):
        await left.remove(SITE + "/a")
    assert await found(await store.live(), "one two") == ["one"]


# ---- what is written ---------------------------------------------------------------------------


async def test_a_missing_vector_is_refused(store):
    chunks = chunks_of(SITE + "/a", "one")
    async with await store.draft(RECIPE) as draft:
        with pytest.raises(StoreError, match=chunks[0].id):
            await draft.put(page_of(SITE + "/a", chunks), chunks, {})


async def test_changed_fields_are_rewritten_with_the_vector_that_is_there(store):
    await publish(store, {"/a": ["one text", "two text"]})
    old = chunks_of(SITE + "/a", "one text", "two text")
    shown = {"title": "Renamed", "modified": "2025-05-05", "sections": (Section(0, ("Top", "Deep"), "deep"),)}
    changed = (replace(old[0], **shown), replace(old[1], published="2024-04-01"))
    async with await store.draft(RECIPE) as draft:
        assert await draft.missing(changed) == ()
        await draft.put(page_of(SITE + "/a", changed), changed, {})
        info = await draft.publish()
    assert info.chunks == 2
    live = await store.live()
    assert await live.fetch([old[0].id]) == (changed[0],)
    leg = (await live.search(semantic(vector("one text")))).vector
    assert leg[0].id == old[0].id
    assert leg[0].score == pytest.approx(1.0, abs=1e-3)
    assert [one.dated for one in leg] == [
        "2025-05-05",
        "2024-04-01",
    ]  # a page that never changed is of the day it came out
    assert await found(live, "renamed") == ["one text"]


async def test_the_last_put_of_a_page_counts(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/a", "first try", "common")
        await put(draft, SITE + "/a", "second try", "common")
        await put(draft, SITE + "/b", "taken back")
        await draft.remove(SITE + "/b")
        await draft.remove(SITE + "/c")
        await put(draft, SITE + "/c", "put after remove")
        info = await draft.publish()
    assert (info.pages, info.chunks) == (2, 3)
    live = await store.live()
    assert sorted(await found(live, "first second taken common after try")) == [
        "common",
        "put after remove",
        "second try",
    ]
    assert len(await near(live, vector("try"))) == 3


async def test_a_removed_page_can_be_put_back(store):
    """With the chunks that it had, new ones and both legs, as if it hadn't been removed."""
    await publish(store, {"/a": ["kept"], "/b": ["other"]})
    async with await store.draft(RECIPE) as draft:
        await draft.remove(SITE + "/a")
        await put(draft, SITE + "/a", "kept", "added")
        info = await draft.publish()
    live = await store.live()
    assert (info.pages, info.chunks) == (2, 3)
    assert sorted(await found(live, "kept added")) == ["added", "kept"]
    assert "kept" in await near(live, vector("kept"))


async def test_an_index_may_become_empty_and_answers_still(store):
    await publish(store, {"/a": ["one"]})
    async with await store.draft(RECIPE) as draft:
        await draft.remove(SITE + "/a")
        info = await draft.publish()
    live = await store.live()
    assert (info.pages, info.chunks, info.languages) == (0, 0, ())
    assert await found(live, "one") == []
    assert await near(live, vector("one")) == []
    assert await live.pages() == ()
    await publish(store, {"/a": ["one again"]})
    assert await found(await store.live(), "one") == ["one again"]


async def test_pages_are_put_from_several_tasks_at_once(store):
    async with await store.draft(RECIPE) as draft:
        async with asyncio.TaskGroup() as tasks:
            for i in range(40):
                tasks.create_task(put(draft, f"{SITE}/{i}", f"common text{i}"))
        info = await draft.publish()
    assert (info.pages, info.chunks) == (40, 40)
    assert len(await found(await store.live(), "common", depth=100)) == 40


async def test_touch_replaces_records_and_writes_no_chunk(store):
    first = await publish(store, {"/a": ["one", "two"], "/b": ["three"]})
    before = await (await store.live()).page(SITE + "/a")
    fetch = replace(before.fetch, etag='"new"', status=500, stale_since="2025-01-01")
    touched = replace(before, fetch=fetch, markdown="ignored", derived=Derived(("x",)))
    async with await store.draft(RECIPE) as draft:
        await draft.touch([touched])
        assert await draft.publish() == first
    live = await store.live()
    assert live.info == first
    assert await store.generations() == (first,)
    expected = replace(touched, markdown=before.markdown, derived=before.derived)
    assert await live.page(SITE + "/a") == expected
    async with await store.draft(RECIPE) as draft:
        states = await draft.page_states()
        assert states[SITE + "/a"] == replace(expected, markdown="")
        assert sorted(states) == [SITE + "/a", SITE + "/b"]
