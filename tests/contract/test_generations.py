"""Generations: a reader keeps the one it has, another recipe rebuilds beside it, and the last can be taken back."""

import asyncio
import time
from dataclasses import replace

import pytest

from app.core.errors import NoIndex, StoreBusy
from app.core.generation import SourceRecord
from app.core.types import LexicalText, Query
from app.index.run_history import LONGEST, EndedRun, RunOrigin, add_run, runs_of
from tests.contract.pages import RECIPE, SITE, chunks_of, found, near, page_of, publish, put, put_chunks, vector

# ---- isolation ---------------------------------------------------------------------------------


async def test_a_pinned_generation_does_not_change(store):
    first = await publish(store, {"/a": ["old alpha"], "/b": ["old beta"], "/c": ["same"]})
    pinned = await store.live()

    async def unchanged() -> None:
        assert pinned.info == first
        assert sorted(await found(pinned, "old new same")) == ["old alpha", "old beta", "same"]
        assert sorted(await near(pinned, vector("old alpha"))) == ["old alpha", "old beta", "same"]
        assert [p.url for p in await pinned.pages()] == [SITE + "/a", SITE + "/b", SITE + "/c"]
        assert [p.url for p in await pinned.first_chunks()] == [SITE + "/a", SITE + "/b", SITE + "/c"]
        assert (await pinned.page(SITE + "/a")).markdown == "old alpha"

    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/a", "new alpha")
        await put(draft, SITE + "/d", "new delta")
        await draft.remove(SITE + "/b")
        await unchanged()
        assert (await store.live()).info == first
        second = await draft.publish()
        await unchanged()
    assert second.id > first.id
    live = await store.live()
    assert sorted(await found(live, "old new same")) == ["new alpha", "new delta", "same"]
    assert await live.page(SITE + "/b") is None
    await store.rollback()
    assert sorted(await found(live, "old new same")) == ["new alpha", "new delta", "same"]
    await unchanged()


@pytest.mark.slow
@pytest.mark.server
async def test_the_first_chunk_of_a_page_is_none_of_its_translation(store):
    """Translations are numbered from the beginning, too; a page without chunks has none."""
    own, other = chunks_of(SITE + "/a", "one", "two"), chunks_of(SITE + "/a", "jedna", language="cs")
    async with await store.draft(RECIPE) as draft:
        await put_chunks(draft, (*own, replace(other[0], translated_from="en")))
        await put(draft, SITE + "/b", "three", collection="more")
        await draft.put(page_of(SITE + "/c"), (), {})
        await draft.publish()
    found = await (await store.live()).first_chunks()
    assert [(one.id, one.url, one.language, one.collection) for one in found] == [
        (own[0].id, SITE + "/a", "en", "docs"),
        (found[1].id, SITE + "/b", "en", "more"),
    ]


async def test_queries_during_publishing_never_fail_nor_mix(store):
    """Ten clients query while generations are published; every answer is of one generation, whole."""
    pages = 6

    async def version(number: int) -> int:
        site = {f"/{i}": [f"common text of page{i} version{number}"] for i in range(pages)}
        return (await publish(store, site)).id

    texts = {await version(0): "version0"}
    stop = asyncio.Event()
    answers = 0

    async def client() -> None:
        nonlocal answers
        while not stop.is_set():
            live = await store.live()
            legs = await live.search(
                Query(texts=(LexicalText("en", "common text"),), vector=vector("common text"), depth=50)
            )
            for leg in (legs.lexical, legs.vector):
                chunks = await live.fetch([c.id for c in leg])
                assert len(chunks) == pages
                assert len({c.text.split()[-1] for c in chunks}) == 1
                seen.setdefault(live.info.id, set()).update(c.text.split()[-1] for c in chunks)
            answers += 1
            await asyncio.sleep(0)  # a store in memory needn't suspend

    seen: dict[int, set[str]] = {}
    async with asyncio.TaskGroup() as tasks:
        for _ in range(10):
            tasks.create_task(client())
        for number in range(1, 6):
            texts[await version(number)] = f"version{number}"
            await asyncio.sleep(0)  # a store in memory needn't suspend
        while answers < 50:
            await asyncio.sleep(0)
        stop.set()
    assert {id_: {texts[id_]} for id_ in seen} == seen


async def test_another_reader_notices_a_publish(store, open_store):
    reader = await open_store()
    first = await publish(store, {"/a": ["one"]})
    assert (await reader.live()).info == first
    second = await publish(store, {"/a": ["two"]})
    assert (await reader.live()).info == second
    await store.rollback()
    assert (await reader.live()).info == first


# ---- generations -------------------------------------------------------------------------------


async def test_another_recipe_rebuilds_beside_the_live_index(store):
    async with await store.draft(RECIPE) as draft:
        assert draft.rebuilds
        assert await draft.page_states() == {}
        await put(draft, SITE + "/a", "one", "two")
        first = await draft.publish()
    other = replace(RECIPE, embedder="other", dimension=4)
    chunks = chunks_of(SITE + "/a", "one")
    async with await store.draft(other) as draft:
        assert draft.rebuilds
        assert await draft.page_states() == {}
        assert await draft.missing(chunks) == chunks
        await draft.put(page_of(SITE + "/a", chunks), chunks, {chunks[0].id: [0.0, 1.0, 0.0, 0.0]})
        assert sorted(await found(await store.live(), "one two")) == ["one", "two"]
        second = await draft.publish()
    assert (second.recipe, second.chunks) == (other, 1)
    live = await store.live()
    assert await found(live, "one two") == ["one"]
    assert await near(live, [0.0, 1.0, 0.0, 0.0]) == ["one"]
    assert (await store.rollback()) == first
    assert sorted(await found(await store.live(), "one two")) == ["one", "two"]
    async with await store.draft(RECIPE) as draft:
        assert not draft.rebuilds


async def test_an_aborted_rebuild_leaves_nothing(store):
    first = await publish(store, {"/a": ["one"]})
    other = replace(RECIPE, splitter="other")
    async with await store.draft(other) as draft:
        await put(draft, SITE + "/a", "aborted")
    assert (await store.live()).info == first
    async with await store.draft(other) as draft:
        assert draft.rebuilds
        await put(draft, SITE + "/a", "one")
        await draft.publish()
    assert await found(await store.live(), "one aborted") == ["one"]


async def test_as_many_generations_are_kept_as_set(store):
    infos = [await publish(store, {"/a": [f"text {n}"]}) for n in range(4)]
    assert await store.generations() == (infos[3], infos[2])
    assert await store.rollback() == infos[2]
    assert await found(await store.live(), "text") == ["text 2"]
    with pytest.raises(NoIndex):
        await store.rollback()
    assert (await store.live()).info == infos[2]


async def test_after_a_rollback_the_next_draft_starts_from_what_is_live(store):
    first = await publish(store, {"/a": ["good"], "/b": ["shared"]})
    second = await publish(store, {"/a": ["bad"], "/c": ["bad too"]})
    assert await store.rollback() == first
    assert (await store.live()).info == first
    async with await store.draft(RECIPE) as draft:
        assert sorted(await draft.page_states()) == [SITE + "/a", SITE + "/b"]
        bad = chunks_of(SITE + "/a", "bad")
        assert await draft.missing(bad) == bad
        await put(draft, SITE + "/d", "fresh")
        third = await draft.publish()
    assert third.id > second.id
    live = await store.live()
    assert sorted(await found(live, "good bad shared fresh")) == ["fresh", "good", "shared"]
    assert [p.url for p in await live.pages()] == [SITE + "/a", SITE + "/b", SITE + "/d"]
    assert (await store.generations())[0] == third
    assert await store.rollback() == first


async def test_a_rollback_is_refused_while_another_writes(store, open_store):
    for text in ("one", "two"):
        await publish(store, {"/a": [text]})
    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/a", "three")
        with pytest.raises(StoreBusy):
            await (await open_store()).rollback()


# ---- runs --------------------------------------------------------------------------------------


async def test_the_results_of_runs_are_kept_also_before_the_first_index(store, open_store):
    """Runs are other processes than the service, which reads their results."""
    assert (await runs_of(store)).counts == {}
    await add_run(store, EndedRun(RunOrigin("nightly"), 1.0, 1.5, "failed", errors=("x" * 999,)))
    with pytest.raises(NoIndex):
        await store.live()
    await publish(store, {"/a": ["alpha"]})
    await add_run(store, EndedRun(RunOrigin(), 2.0, 2.5, "published"))
    await add_run(store, EndedRun(RunOrigin("http", "admin1", "run-1"), 3.0, 3.5, "published", {"new": 1}, 4))
    runs = await runs_of(await open_store())
    assert (runs.counts, runs.seconds) == ({"failed": 1, "published": 2}, 3.5)
    assert abs(time.time() - runs.ended["published"]) < 60
    assert [run.origin.trigger for run in runs.last] == ["http", "command", "nightly"]
    assert runs.last[0] == EndedRun(RunOrigin("http", "admin1", "run-1"), 3.0, 3.5, "published", {"new": 1}, 4)
    assert runs.last[2].errors == ("x" * LONGEST,)
    assert (await (await open_store()).generations())[0].pages == 1


async def test_the_sources_of_a_generation_are_kept_with_it(open_store):
    """Other ones without another page make no new generation; none given are those of before; a rollback brings its own."""
    store = await open_store()
    one, two = (SourceRecord({"url": f"{SITE}/{name}", "collection": "docs"}, (f"{SITE}/{name}",)) for name in "ab")
    for number, sources in enumerate(((one,), (one, two), ()), 1):
        async with await store.draft(RECIPE) as draft:
            if number != 2:
                await put(draft, SITE + f"/{number}", f"text {number}")
            info = await draft.publish(sources)
        assert info.id == (1 if number < 3 else info.id)
        live = await (await open_store()).live()
        assert live.info == info == (await store.live()).info == (await store.generations())[0]
        assert info.sources == (one, two)[: max(1, len(sources) or 2)]
    assert (await store.rollback()).sources == (one, two)


async def test_a_rebuild_with_another_recipe_takes_away_no_way_back(store):
    """The generation before it is the same pages again, so that behind it is kept too; the next run counts as ever."""
    ids = [(await publish(store, {"/a": ["alpha"]})).id]
    async with await store.draft(RECIPE) as draft:  # as `run --replace`
        await put(draft, SITE + "/b", "beta")
        await draft.remove(SITE + "/a")
        ids.insert(0, (await draft.publish()).id)
    other = replace(RECIPE, splitter="another")
    ids.insert(0, (await publish(store, {"/b": ["beta"]}, other)).id)
    assert [info.id for info in await store.generations()] == ids
    for id_, text in zip(ids[1:], ("beta", "alpha"), strict=True):
        assert (await store.rollback()).id == id_
        assert await found(await store.live(), "alpha beta") == [text]
    for text in ("gamma", "delta"):
        await publish(store, {"/b": [text]}, other)
    assert len(await store.generations()) == 2


async def test_what_operators_keep_is_there_before_and_after_a_generation(store, open_store):
    """By name, whichever process writes it; the runs beside it stay."""
    assert await store.kept("sites") == {}
    await store.keep("sites", {"added": {"https://docs.example.org/": {"at": "2026"}}})
    await publish(store, {"/a": ["alpha"]})
    again = await open_store()
    await again.keep("sites", {"added": {}})
    assert (await store.kept("sites"), await store.kept("curated")) == ({"added": {}}, {})
    assert (await runs_of(again)).counts == {}
