"""What the embedded store writes to its tables, and what it leaves alone."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from app.index.embedded.tables import SLACK
from tests.app.index.embedded.pages import RECIPE, pointer, publish, put, tables, texts_of
from tests.contract.pages import SITE, chunks_of, put_chunks


async def test_touch_writes_no_chunk_and_no_markdown(store, tmp_path):
    await publish(store, {1: ("common one",), 2: ("common two",)})
    folder = tmp_path / "index"
    (before,), files = pointer(folder)["generations"], {f for f in folder.rglob("*") if "pages_" not in str(f)}
    async with await store.draft(RECIPE) as draft:
        await draft.touch(
            [replace(page, fetch=replace(page.fetch, etag="new")) for page in (await draft.page_states()).values()]
        )
        await draft.publish()
    after = pointer(folder)["generations"][0]
    assert (after["chunks"], after["texts"]) == (before["chunks"], before["texts"])
    assert {f for f in folder.rglob("*") if "pages_" not in str(f)} == files


async def test_nothing_changed_writes_nothing(store, tmp_path):
    await publish(store, {1: ("common one",)})
    await store.live()

    def times():
        files = (file for file in (tmp_path / "index").rglob("*") if file.is_file() and file.name != "write.lock")
        return {file: file.stat().st_mtime_ns for file in files}

    before = times()
    async with await store.draft(RECIPE) as draft:
        await draft.touch((await draft.page_states()).values())
        await draft.remove("https://docs.example.org/unknown")
        await draft.publish()
    assert before == times()


async def test_unchanged_chunks_are_not_copied(store, tmp_path):
    """300 pages with big texts put again, one of them changed, write far less than the index weighs."""
    rng = random.Random(1)
    big = {n: (f"common {n} " + " ".join(str(rng.random()) for _ in range(100)),) for n in range(300)}
    await publish(store, big)

    def written() -> int:
        return sum(f.stat().st_size for f in (tmp_path / "index").glob("chunks_*/data/**/*") if f.is_file())

    before = written()
    await publish(store, big | {7: ("common changed",)})
    assert written() - before < before / 20
    assert len(await texts_of(await store.live())) == 300


async def test_a_page_put_again_after_a_batch_was_written_replaces_it(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, 0, "common first")
        for n in range(1, 1100):
            await put(draft, n, f"common {n}")
        await put(draft, 0, "common second")
        await draft.remove("https://docs.example.org/1")
        info = await draft.publish()
    assert info.chunks == 1099
    texts = await texts_of(await store.live())
    assert "common second" in texts
    assert not texts & {"common first", "common 1"}


async def test_a_removed_page_that_comes_back_needs_no_vectors(store):
    await publish(store, {n: (f"common {n}",) for n in range(1100)})
    chunks = chunks_of(f"{SITE}/5", "common 5")
    async with await store.draft(RECIPE) as draft:
        for n in range(1050):
            await draft.remove(f"https://docs.example.org/{n}")
        await put(draft, 2000, "common new")  # a batch is full: what was removed is gone from the table
        assert await draft.missing(chunks) == ()
        await put_chunks(draft, chunks)
        await draft.publish()
    live = await store.live()
    assert await texts_of(live) == {f"common {n}" for n in range(1050, 1100)} | {"common 5", "common new"}


@pytest.mark.slow
@pytest.mark.server
async def test_many_small_changes_keep_the_index_small_and_right(store, tmp_path):
    """Files are merged and old versions deleted while generations come and go."""
    await publish(store, {n: (f"common {n}",) for n in range(30)})
    for step in range(60):
        if step == 45:  # a version younger than SLACK stays: on a fast machine that is all of them
            await asyncio.sleep(SLACK.total_seconds() + 0.2)
        await publish(store, {step % 30: (f"common {step % 30} changed at {step}",)})
    assert len(await texts_of(await store.live())) == 30
    folder = next((tmp_path / "index").glob("chunks_*"))
    assert len(list((folder / "data").iterdir())) < 50
    assert len(list((folder / "_versions").iterdir())) < 70  # without cleaning 160
    assert len(tables(tmp_path / "index")["pages"]) <= 3


@pytest.mark.server
async def test_a_slow_machine_that_cleans_too_late_publishes_all_the_same(store, monkeypatch, caplog):
    """LanceDB counts the age of versions when it gets to them: a tagged one may be old by then, which only defers cleaning."""
    await publish(store, {0: ("common 2",), 1: ("common same",)})
    monkeypatch.setattr("app.index.embedded.tables.SLACK", timedelta(seconds=-1))
    await asyncio.sleep(1.2)
    await publish(store, {0: ("common 3",)})
    assert "Old versions of a table stay until the next run" in caplog.text
    assert sorted(await texts_of(await store.live())) == ["common 3", "common same"]
    await store.rollback()
    assert sorted(await texts_of(await store.live())) == ["common 2", "common same"]
