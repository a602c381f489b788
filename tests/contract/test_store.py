"""What every store promises (`app/core/store/base.py`), on each of them."""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from app.core.errors import IndexMismatch, NoIndex, StoreBusy, StoreError
from app.core.filters import Filters
from app.core.store.base import Draft, Store
from app.core.store.search import search
from app.core.types import Chunk, LexicalText, Page, Query, Recipe, Section, Vector

DIMENSION = 16
RECIPE = Recipe(embedder="words-16", dimension=DIMENSION, splitter="one-line-1", analyzer="test-1")
SITE = "https://docs.example.org"


def vector(text: str) -> Vector:
    """A bag of hashed words, so that equal texts are near and others aren't."""
    values = [0.0] * DIMENSION
    for word in text.lower().split():
        values[zlib.crc32(word.encode()) % DIMENSION] += 1.0
    length = math.sqrt(sum(v * v for v in values)) or 1.0
    return [v / length for v in values]


def axis(index: int, sign: float = 1.0) -> Vector:
    return [sign if i == index else 0.0 for i in range(DIMENSION)]


def chunks_of(url: str, *texts: str, language: str = "en", title: str = "A page", collection: str = "docs"):
    return tuple(
        Chunk(
            id=f"{zlib.crc32(f'{collection} {url} {text}'.encode()):08x}",
            collection=collection,
            url=url,
            position=position,
            text=text,
            language=language,
            title=title,
        )
        for position, text in enumerate(texts)
    )


def page_of(url: str, chunks: Sequence[Chunk] = (), **values) -> Page:
    first = chunks[0] if chunks else None
    known = {
        "collection": first.collection if first else "docs",
        "title": first.title if first else "A page",
        "language": first.language if first else "en",
        "markdown": "\n\n".join(c.text for c in chunks),
        "hash": f"{zlib.crc32(repr(chunks).encode()):08x}",
    }
    return Page(url=url, **(known | values))


async def put(draft: Draft, url: str, *texts: str, **values) -> tuple[Chunk, ...]:
    """Put a page of these texts, with vectors for what is missing only, as ingestion does."""
    chunks = chunks_of(url, *texts, **values)
    await put_chunks(draft, chunks)
    return chunks


async def put_chunks(draft: Draft, chunks: Sequence[Chunk]) -> None:
    missing = await draft.missing(chunks)
    await draft.put(page_of(chunks[0].url, chunks), chunks, {c.id: vector(c.text) for c in missing})


async def publish(store: Store, site: dict[str, Sequence[str]], recipe: Recipe = RECIPE, **values):
    async with await store.draft(recipe) as draft:
        for path, texts in site.items():
            await put(draft, SITE + path, *texts, **values)
        return await draft.publish()


def lexical(text: str, language: str = "en", **values) -> Query:
    return Query(texts=(LexicalText(language, text),), **values)


def semantic(values: Vector, **others) -> Query:
    return Query(texts=(), vector=values, **others)


async def found(generation, text: str, language: str = "en", **values) -> list[str]:
    """Texts of the lexical leg's candidates, best first."""
    legs = await generation.search(lexical(text, language, **values))
    return [chunk.text for chunk in await generation.fetch([c.id for c in legs.lexical])]


async def near(generation, values: Vector, **others) -> list[str]:
    """Texts of the vector leg's candidates, best first."""
    legs = await generation.search(semantic(values, **others))
    return [chunk.text for chunk in await generation.fetch([c.id for c in legs.vector])]


# ---- an empty index, and what a first run makes of it ------------------------------------------


async def test_before_the_first_publish_there_is_no_index(store):
    with pytest.raises(NoIndex):
        await store.live()
    with pytest.raises(NoIndex):
        await store.rollback()
    assert await store.generations() == ()


async def test_an_open_first_draft_is_not_served(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/a", "one text")
        with pytest.raises(NoIndex):
            await store.live()


async def test_a_first_draft_without_pages_is_no_index(store):
    async with await store.draft(RECIPE) as draft:
        with pytest.raises(NoIndex):
            await draft.publish()
    with pytest.raises(NoIndex):
        await store.live()


async def test_the_index_remembers_how_it_was_made(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/en/a", "one text", "another text")
        await put(draft, SITE + "/cs/a", "nějaký text", language="cs")
        info = await draft.publish()
    assert (info.recipe, info.languages, info.pages, info.chunks) == (RECIPE, ("cs", "en"), 2, 3)
    assert info.id >= 1
    assert datetime.fromisoformat(info.built_at).utcoffset().total_seconds() == 0
    assert (await store.live()).info == info
    assert await store.generations() == (info,)


async def test_a_chunk_comes_back_as_it_was_put(store):
    chunk = Chunk(
        id="a1b2",
        collection="docs",
        url=SITE + "/a",
        position=0,
        text="Tabs\t, lines\n\n\"quotes\" 'single' – „české“ \\ back 🙂",
        language="cs",
        title="Úvod: 'první' <kroky>",
        sections=(Section(0, ("Úvod", "První > kroky"), "prvni-kroky"), Section(12, ("Úvod",), "")),
        file="docs/uvod.md",
        published="2024-01-31",
        modified="2025-02-28T10:00:00+00:00",
        before="…what stands before",
        after="what stands after…",
        translated_from="sk",
    )
    async with await store.draft(RECIPE) as draft:
        await put_chunks(draft, (chunk,))
        await draft.publish()
    assert await (await store.live()).fetch([chunk.id]) == (chunk,)


async def test_fetch_keeps_the_asked_order_and_leaves_out_the_unknown(store):
    chunks = chunks_of(SITE + "/a", "one", "two", "three")
    async with await store.draft(RECIPE) as draft:
        await put_chunks(draft, chunks)
        await draft.publish()
    live = await store.live()
    one, two, three = chunks
    assert await live.fetch([three.id, "unknown", one.id, two.id]) == (three, one, two)
    assert await live.fetch([]) == ()


async def test_pages_come_back_by_address(store):
    chunks = chunks_of(SITE + "/b", "one", "two")
    page = page_of(
        SITE + "/b",
        chunks,
        markdown="# One\n\n'two' \"three\"",
        fetched_url=SITE + "/b.mdx",
        canonical=SITE + "/b",
        alternates={"cs": SITE + "/cs/b", "en": SITE + "/b"},
        file="b.mdx",
        published="2024-01-01",
        modified="2024-01-02",
        etag='W/"abc"',
        last_modified="Mon, 01 Jan 2024 00:00:00 GMT",
        fetched_at="2024-02-01T00:00:00+00:00",
        last_ok="2024-02-01T00:00:00+00:00",
        stale_since="2024-02-02T00:00:00+00:00",
        same_as=f"{SITE}/other",
        reading="off\nmain",
        translations=("cs:0123", "de:4567!"),
    )
    async with await store.draft(RECIPE) as draft:
        await draft.put(page, chunks, {c.id: vector(c.text) for c in chunks})
        await put(draft, SITE + "/a", "three")
        await draft.publish()
    live = await store.live()
    stored = replace(page, chunk_ids=tuple(c.id for c in chunks))
    assert await live.page(SITE + "/b") == stored
    assert await live.page(SITE + "/unknown") is None
    pages = await live.pages()
    assert [p.url for p in pages] == [SITE + "/a", SITE + "/b"]
    assert pages[1] == replace(stored, markdown="")


async def test_a_page_may_have_no_chunks(store):
    async with await store.draft(RECIPE) as draft:
        await draft.put(page_of(SITE + "/empty"), (), {})
        await put(draft, SITE + "/a", "one")
        info = await draft.publish()
    assert (info.pages, info.chunks) == (2, 1)
    assert (await (await store.live()).page(SITE + "/empty")).chunk_ids == ()


async def test_a_published_index_outlives_the_process(store, open_store):
    info = await publish(store, {"/a": ["durable text"]})
    await store.close()
    await store.close()
    again = await (await open_store()).live()
    assert again.info == info
    assert await found(again, "durable") == ["durable text"]


# ---- isolation ---------------------------------------------------------------------------------


async def test_a_pinned_generation_does_not_change(store):
    first = await publish(store, {"/a": ["old alpha"], "/b": ["old beta"], "/c": ["same"]})
    pinned = await store.live()

    async def unchanged() -> None:
        assert pinned.info == first
        assert sorted(await found(pinned, "old new same")) == ["old alpha", "old beta", "same"]
        assert sorted(await near(pinned, vector("old alpha"))) == ["old alpha", "old beta", "same"]
        assert [p.url for p in await pinned.pages()] == [SITE + "/a", SITE + "/b", SITE + "/c"]
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


@pytest.mark.server
async def test_queries_during_publishing_never_fail_nor_mix(store):
    """50 clients query while generations are published; every answer is of one generation, whole."""
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

    seen: dict[int, set[str]] = {}
    async with asyncio.TaskGroup() as tasks:
        for _ in range(50):
            tasks.create_task(client())
        for number in range(1, 6):
            texts[await version(number)] = f"version{number}"
        stop.set()
    assert answers >= 50
    assert {id_: {texts[id_]} for id_ in seen} == seen


async def test_another_reader_notices_a_publish(store, open_store):
    reader = await open_store()
    first = await publish(store, {"/a": ["one"]})
    assert (await reader.live()).info == first
    second = await publish(store, {"/a": ["two"]})
    assert (await reader.live()).info == second
    await store.rollback()
    assert (await reader.live()).info == first


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


@pytest.mark.parametrize("writes", ["puts", "removes", "touches"])
async def test_of_two_writers_only_one_publishes(store, open_store, writes):
    """The second is refused when it begins, or with its first write; it never undoes what the first one did."""
    await publish(store, {"/one": ["one"], "/two": ["two"]})
    async with await store.draft(RECIPE) as first:
        with pytest.raises(StoreBusy):
            async with await (await open_store()).draft(RECIPE) as second:
                await put(first, SITE + "/one", "one more")
                await first.publish()
                if writes == "puts":
                    await put(second, SITE + "/one", "another one")
                elif writes == "removes":
                    await second.remove(SITE + "/one")
                else:
                    await second.touch([replace(page, status=500) for page in (await second.page_states()).values()])
                await second.publish()
        if not (await store.live()).info.id > 1:
            await put(first, SITE + "/one", "one more")
            await first.publish()
    live = await store.live()
    assert sorted(await found(live, "one two more another")) == ["one more", "two"]
    assert {page.status for page in await live.pages()} != {500}


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


async def test_only_new_chunks_are_missing(store):
    await publish(store, {"/a": ["one", "two"]})
    old = chunks_of(SITE + "/a", "one", "two")
    new = chunks_of(SITE + "/a", "three")
    async with await store.draft(RECIPE) as draft:
        assert not draft.rebuilds
        assert await draft.missing(old + new) == new


async def test_a_missing_vector_is_refused(store):
    chunks = chunks_of(SITE + "/a", "one")
    async with await store.draft(RECIPE) as draft:
        with pytest.raises(StoreError, match=chunks[0].id):
            await draft.put(page_of(SITE + "/a", chunks), chunks, {})


async def test_an_unchanged_chunk_is_not_written_again(store):
    """`position` is of the first writing, so a chunk that moved but stayed the same shows its old one."""
    await publish(store, {"/a": ["one", "two"]})
    moved = chunks_of(SITE + "/a", "zero", "one", "two")
    async with await store.draft(RECIPE) as draft:
        await put_chunks(draft, moved)
        await draft.publish()
    live = await store.live()
    assert [c.position for c in await live.fetch([c.id for c in moved])] == [0, 0, 1]
    assert (await live.page(SITE + "/a")).chunk_ids == tuple(c.id for c in moved)


async def test_changed_fields_are_rewritten_with_the_vector_that_is_there(store):
    await publish(store, {"/a": ["one text", "two text"]})
    old = chunks_of(SITE + "/a", "one text", "two text")
    shown = {"title": "Renamed", "modified": "2025-05-05", "sections": (Section(0, ("Top", "Deep"), "deep"),)}
    changed = (replace(old[0], **shown), old[1])
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
    assert leg[0].modified == "2025-05-05"
    assert len(leg) == 2
    assert await found(live, "renamed") == ["one text"]


async def test_chunks_that_left_the_page_leave_both_legs(store):
    await publish(store, {"/a": ["stays here", "goes away"], "/b": ["other page"]})
    await publish(store, {"/a": ["stays here"]})
    live = await store.live()
    assert live.info.chunks == 2
    assert await found(live, "stays goes") == ["stays here"]
    assert sorted(await near(live, vector("goes away"))) == ["other page", "stays here"]


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


async def test_removed_pages_leave_and_unknown_ones_are_no_error(store):
    await publish(store, {"/a": ["one"], "/b": ["two"]})
    async with await store.draft(RECIPE) as draft:
        await draft.remove(SITE + "/a")
        await draft.remove(SITE + "/unknown")
        info = await draft.publish()
    live = await store.live()
    assert (info.pages, info.chunks) == (1, 1)
    assert [p.url for p in await live.pages()] == [SITE + "/b"]
    assert await found(live, "one two") == ["two"]


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
    touched = replace(before, etag='"new"', status=500, stale_since="2025-01-01", markdown="ignored", chunk_ids=("x",))
    async with await store.draft(RECIPE) as draft:
        await draft.touch([touched])
        assert await draft.publish() == first
    live = await store.live()
    assert live.info == first
    assert await store.generations() == (first,)
    expected = replace(touched, markdown=before.markdown, chunk_ids=before.chunk_ids)
    assert await live.page(SITE + "/a") == expected
    async with await store.draft(RECIPE) as draft:
        states = await draft.page_states()
        assert states[SITE + "/a"] == replace(expected, markdown="")
        assert sorted(states) == [SITE + "/a", SITE + "/b"]


async def test_touched_records_are_part_of_the_next_generation(store):
    first = await publish(store, {"/a": ["one"], "/b": ["two"]})
    page = await (await store.live()).page(SITE + "/a")
    async with await store.draft(RECIPE) as draft:
        await draft.touch([replace(page, etag='"new"')])
        await put(draft, SITE + "/b", "changed")
        second = await draft.publish()
    assert second.id > first.id
    stored = await (await store.live()).page(SITE + "/a")
    assert (stored.etag, stored.markdown) == ('"new"', "one")


async def test_touched_records_of_an_aborted_draft_are_lost(store):
    await publish(store, {"/a": ["one"]})
    page = await (await store.live()).page(SITE + "/a")
    async with await store.draft(RECIPE) as draft:
        await draft.touch([replace(page, etag='"new"')])
    assert await (await store.live()).page(SITE + "/a") == page


async def test_nothing_put_or_removed_is_no_new_generation(store):
    first = await publish(store, {"/a": ["one"]})
    async with await store.draft(RECIPE) as draft:
        assert await draft.publish() == first
    assert await store.generations() == (first,)


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


async def test_an_untouched_rebuild_keeps_the_live_index(store):
    first = await publish(store, {"/a": ["one"]})
    async with await store.draft(replace(RECIPE, splitter="other")) as draft:
        assert await draft.publish() == first
    assert (await store.live()).info == first


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


async def test_what_a_rollback_dropped_can_come_again(store):
    await publish(store, {"/a": ["one"]})
    await publish(store, {"/a": ["two"]})
    await store.rollback()
    await publish(store, {"/a": ["two"]})
    live = await store.live()
    assert await found(live, "one two") == ["two"]
    assert len(await near(live, vector("two"))) == 1


# ---- the legs ----------------------------------------------------------------------------------


async def test_scores_are_raw_and_the_best_come_first(store):
    texts = {"same": axis(0), "right angle": axis(1), "opposite": axis(0, -1.0)}
    async with await store.draft(RECIPE) as draft:
        chunks = chunks_of(SITE + "/a", *texts)
        await draft.put(page_of(SITE + "/a", chunks), chunks, {c.id: texts[c.text] for c in chunks})
        await draft.publish()
    live = await store.live()
    legs = await live.search(semantic([3.0] + [0.0] * (DIMENSION - 1)))
    assert legs.lexical == ()
    assert [c.id for c in legs.vector] == [c.id for c in chunks]
    assert [c.score for c in legs.vector] == pytest.approx([1.0, 0.0, -1.0], abs=1e-3)
    assert {(c.url, c.language) for c in legs.vector} == {(SITE + "/a", "en")}


async def test_the_lexical_leg_ranks_by_rare_words(store):
    await publish(store, {"/a": ["storage common", "common words", "common things", "storage quota common"]})
    legs = await (await store.live()).search(lexical("common storage quota"))
    scores = [c.score for c in legs.lexical]
    assert legs.vector == ()
    assert (await (await store.live()).fetch([legs.lexical[0].id]))[0].text == "storage quota common"
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1] > 0


async def test_weights_scale_and_several_texts_are_summed(store):
    await publish(store, {"/a": ["alpha first", "beta second", "alpha beta"], "/b": ["nothing here"]})
    live = await store.live()

    async def scores(*texts: LexicalText) -> dict[str, float]:
        return {c.id: c.score for c in (await live.search(Query(texts=texts))).lexical}

    alpha = await scores(LexicalText("en", "alpha"))
    beta = await scores(LexicalText("en", "beta"))
    doubled = await scores(LexicalText("en", "alpha", 2.0))
    both = await scores(LexicalText("en", "alpha", 2.0), LexicalText("en", "beta", 0.5))
    assert len(alpha) == len(beta) == 2
    assert doubled == pytest.approx({id_: 2 * score for id_, score in alpha.items()}, rel=1e-3)
    expected = {id_: 2 * alpha.get(id_, 0) + 0.5 * beta.get(id_, 0) for id_ in alpha | beta}
    assert both == pytest.approx(expected, rel=1e-3)


async def test_each_text_is_analysed_in_its_own_language(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/cs", "Na serverech najdete velké disky.", language="cs")
        await put(draft, SITE + "/en", "The children were running quickly.", language="en")
        await draft.publish()
    live = await store.live()
    assert await found(live, "velký server disk", "cs") == ["Na serverech najdete velké disky."]
    assert await found(live, "run", "en") == ["The children were running quickly."]
    both = Query(texts=(LexicalText("cs", "server"), LexicalText("en", "run")))
    assert {c.language for c in (await live.search(both)).lexical} == {"cs", "en"}


@pytest.mark.parametrize("question", ["úložiště", "uloziste", "ÚLOŽIŠTĚ"])
@pytest.mark.parametrize("text", ["Zálohujte úložiště", "Zalohujte uloziste"])
async def test_diacritics_are_folded_on_both_sides(store, question, text):
    await publish(store, {"/a": [text], "/b": ["něco jiného"]}, language="cs")
    assert await found(await store.live(), question, "cs") == [text]


async def test_titles_and_headings_are_searched(store):
    plain = chunks_of(SITE + "/a", "some text", title="Quota")[0]
    deep = replace(chunks_of(SITE + "/b", "more text", title="Other")[0], sections=(Section(0, ("Top", "Snapshots")),))
    async with await store.draft(RECIPE) as draft:
        await put_chunks(draft, (plain,))
        await put_chunks(draft, (deep,))
        await draft.publish()
    live = await store.live()
    assert await found(live, "quota") == ["some text"]
    assert await found(live, "snapshots") == ["more text"]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("app.kubernetes.io/name", "Set the label app.kubernetes.io/name on it"),
        ("kubernetes", "Set the label app.kubernetes.io/name on it"),
        ("nvidia.com/gpu", "resources: nvidia.com/gpu: 1"),
        ("gpu", "resources: nvidia.com/gpu: 1"),
        ("my_var", "export my_var=1"),
        ("--dry-run", "kubectl apply --dry-run=server"),
        ("ERR_CONNECTION_REFUSED", "It said ERR_CONNECTION_REFUSED."),
    ],
)
async def test_identifiers_are_found_whole_and_in_parts(store, question, text):
    await publish(store, {"/a": [text], "/b": ["something else entirely"]})
    assert await found(await store.live(), question) == [text]


@pytest.mark.parametrize("leg", ["lexical", "vector"])
async def test_depth_limits_each_leg(store, leg):
    await publish(store, {f"/{i}": [f"common text{i}"] for i in range(12)})
    query = Query(texts=(LexicalText("en", "common"),), vector=vector("common"), depth=7)
    assert len(getattr(await (await store.live()).search(query), leg)) == 7


async def test_exact_search_finds_the_same_on_a_small_index(store):
    texts = [f"word{i} word{i % 7} word{i % 3}" for i in range(60)]
    await publish(store, {f"/{i}": [text] for i, text in enumerate(texts)})
    live = await store.live()
    for text in texts[:10]:
        exact = await near(live, vector(text), exact=True, depth=60)
        assert len(exact) == 60
        assert set(exact[:1]) <= set(await near(live, vector(text), depth=60))
        best = (await live.search(semantic(vector(text), exact=True))).vector[0]
        assert best.score == pytest.approx(1.0, abs=1e-3)


# ---- filters -----------------------------------------------------------------------------------

ODD = '/it\'s 100%_"quoted"\\*?[x]/'


async def three_kinds(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/en/a", "common english", language="en", collection="docs")
        await put(draft, SITE + "/cs/a", "common czech", language="cs", collection="docs")
        await put(draft, SITE + "/en/b", "common blog", language="en", collection='blog\'s "own"')
        await put(draft, SITE + ODD + "a", "common odd", language="en", collection="odd")
        await draft.publish()
    return await store.live()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), {"english", "czech", "blog", "odd"}),
        (Filters(collections=("docs",)), {"english", "czech"}),
        (Filters(collections=('blog\'s "own"', "odd")), {"blog", "odd"}),
        (Filters(languages=("cs",)), {"czech"}),
        (Filters(languages=("cs", "en")), {"english", "czech", "blog", "odd"}),
        (Filters(url_prefixes=(SITE + "/en/",)), {"english", "blog"}),
        (Filters(url_prefixes=(SITE + "/cs/", SITE + "/en/b")), {"czech", "blog"}),
        (Filters(url_prefixes=("docs.example.org",)), set()),
        (Filters(url_prefixes=(SITE + ODD,)), {"odd"}),
        (Filters(url_prefixes=(SITE + "/%",)), set()),
        (Filters(url_prefixes=(SITE + "/*",)), set()),
        (Filters(url_prefixes=(SITE + "/.*",)), set()),
        (Filters(collections=("docs",), languages=("en",), url_prefixes=(SITE,)), {"english"}),
        (Filters(collections=("docs",), languages=("sk",)), set()),
        (Filters(collections=("x' OR '1'='1",)), set()),
    ],
)
async def test_filters_apply_to_both_legs(store, filters, expected):
    live = await three_kinds(store)
    query = Query(texts=(LexicalText("en", "common"),), vector=vector("common"), filters=filters)
    legs = await live.search(query)
    for leg in (legs.lexical, legs.vector):
        chunks = await live.fetch([c.id for c in leg])
        assert {c.text.removeprefix("common ") for c in chunks} == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(sections=("/docs",)), {"old", "new", "latest", "plain"}),
        (Filters(sections=("docs/2.0/",)), {"new"}),
        (Filters(sections=("/docs/plain",)), {"plain"}),
        (Filters(sections=("/",)), {"old", "new", "latest", "plain", "docset", "other"}),
        (Filters(sections=("/docs", "/docset.html")), {"old", "new", "latest", "plain", "docset"}),
        (Filters(sections=("/docs/.*", "/d(ocs")), set()),
        (Filters(sections=("/docs",)).narrowed(Filters(sections=("/docs/v1.0",))), {"old"}),
        (Filters(sections=("/docset.html",)).narrowed(Filters(sections=("/docs",))), set()),
        (Filters(versions=("1.0",)), {"old"}),
        (Filters(versions=("2.0", "latest")), {"new", "latest"}),
        (Filters(versions=("1",)), set()),
        (Filters(versions=("2.0",), sections=("/x",)), set()),
        (Filters(versions=("2.0",)).narrowed(Filters(versions=("1.0",))), set()),
        (Filters(url_prefixes=(SITE,)).narrowed(Filters(url_prefixes=("https://else.org/",))), set()),
        (Filters().narrowed(Filters(url_prefixes=("https://else.org/",))), {"other"}),
    ],
)
async def test_sections_and_versions_are_read_from_the_path(store, filters, expected):
    """They restrict both legs, whatever characters they have."""
    pages = {
        f"{SITE}/docs/v1.0/a": "old",
        f"{SITE}/docs/2.0/a": "new",
        f"{SITE}/docs/latest/a": "latest",
        f"{SITE}/docs/plain": "plain",
        f"{SITE}/docset.html": "docset",
        "https://else.org/x/docs/2x0/a": "other",
    }
    async with await store.draft(RECIPE) as draft:
        for url, text in pages.items():
            await put(draft, url, f"common {text}")
        live = await draft.publish() and await store.live()
    query = Query(texts=(LexicalText("en", "common"),), vector=vector("common"), filters=filters)
    legs = await live.search(query)
    for leg in (legs.lexical, legs.vector):
        assert {pages[c.url] for c in leg} == expected


async def test_of_a_page_in_several_versions_the_newest_is_found(store):
    """Unless the filters or the question name another."""
    versions = ("v1.9", "v1.10", "next")
    async with await store.draft(RECIPE) as draft:
        for version in versions:
            await put(draft, f"{SITE}/{version}/quota", f"common quota of {version}")
        await draft.publish()
    live, query = await store.live(), Query(texts=(LexicalText("en", "common quota"),))

    async def found(**values) -> set[str]:
        return {hit.chunk.url.split("/")[3] for hit in await search(live, replace(query, **values))}

    assert await found() == {"v1.10"}
    assert await found(versions=("1.9.2",)) == {"v1.9"}
    assert await found(filters=Filters(versions=("next", "1.9"))) == {"next", "v1.9"}


async def test_a_filter_does_not_starve_the_legs(store):
    """Filters apply before the cut at `depth`, not after."""
    async with await store.draft(RECIPE) as draft:
        for i in range(30):
            await put(draft, f"{SITE}/many/{i}", f"common text{i}")
        await put(draft, SITE + "/few/a", "common and much longer, so that it ranks below all of the others")
        await draft.publish()
    filters = Filters(url_prefixes=(SITE + "/few/",))
    live = await store.live()
    query = Query(texts=(LexicalText("en", "common"),), vector=vector("common"), filters=filters, depth=5)
    legs = await live.search(query)
    assert len(legs.lexical) == len(legs.vector) == 1


# ---- odd input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\t",
        "?!... -- ()",
        "the of and a is",
        "a se na je v",
        "🙂",
        '" unbalanced',
        '+ - && || ! ( ) { } [ ] ^ " ~ * ? : \\ /',
        "title:quota AND (NOT x) OR [a TO b] boost^9 fuzzy~2 wild* car?d",
        "'; DROP TABLE chunks; --",
        "{{mustache}} ${var} %s <b>html</b> \x00 \x1b",
        "x" * 40_000,
    ],
)
async def test_any_question_text_is_answered(store, text):
    await publish(store, {"/a": ["some ordinary text about quota"]})
    live = await store.live()
    for language in ("en", "cs", "", "xx"):
        legs = await live.search(Query(texts=(LexicalText(language, text),), vector=vector("quota")))
        assert len(legs.vector) == 1
        assert len(legs.lexical) <= 1


async def test_a_very_long_question_is_answered(store):
    await publish(store, {"/a": ["some ordinary text about quota"], "/b": ["unrelated"]})
    question = " ".join(f"word{i}" for i in range(3000)) + " quota"
    assert await found(await store.live(), "quota " + question) == ["some ordinary text about quota"]


async def test_special_characters_are_stored_and_found(store):
    text = 'Set title:"x" AND y* (a OR b) ~2 ^3 \\ / {"json": [1]} \'quoted\' <tag/> quota'
    await publish(store, {"/a": [text]})
    live = await store.live()
    assert await found(live, text) == [text]
    assert await found(live, "json") == [text]


@pytest.mark.parametrize(
    "path",
    [
        "/" + "long/" * 100,
        "/it's-quoted'",
        '/double"quote',
        "/back\\slash",
        "/příliš/žluťoučký?q=a&b=%20#x",
        "/{curly}[square](round)",
        "/a b\tc",
        "/--; DROP TABLE pages",
        "/emoji/🙂",
    ],
)
async def test_odd_addresses_are_addresses_like_others(store, path):
    url = SITE + path
    await publish(store, {path: ["odd page"], "/plain": ["plain page"]})
    live = await store.live()
    assert (await live.page(url)).url == url
    legs = await live.search(lexical("odd", filters=Filters(url_prefixes=(url,))))
    assert [c.url for c in legs.lexical] == [url]
    chunks = await live.fetch([legs.lexical[0].id])
    assert chunks[0].url == url
    assert await live.neighbours(chunks[0], 1) == ()
    async with await store.draft(RECIPE) as draft:
        assert (await draft.page_states())[url].url == url
        await draft.remove(url)
        await draft.publish()
    live = await store.live()
    assert await live.page(url) is None
    assert [p.url for p in await live.pages()] == [SITE + "/plain"]


async def test_addresses_that_differ_late_or_in_case_are_different(store):
    base = "/" + "x" * 400
    await publish(store, {base + "/a": ["first"], base + "/b": ["second"], base + "/A": ["third"]})
    async with await store.draft(RECIPE) as draft:
        await draft.remove(SITE + base + "/a")
        await draft.publish()
    live = await store.live()
    assert sorted(await found(live, "first second third")) == ["second", "third"]


async def test_vectors_of_another_length_are_refused(store):
    chunks = chunks_of(SITE + "/b", "two")
    await publish(store, {"/a": ["one"]})
    async with await store.draft(RECIPE) as draft:
        with pytest.raises(IndexMismatch):
            await draft.put(page_of(SITE + "/b", chunks), chunks, {chunks[0].id: [1.0] * (DIMENSION + 1)})
    with pytest.raises(IndexMismatch):
        await (await store.live()).search(semantic([1.0] * (DIMENSION - 1)))


async def test_a_chunk_without_direction_is_found_by_its_words(store):
    """A text that the embedder knows nothing of has a vector of zeros, which has no cosine."""
    chunks = chunks_of(SITE + "/a", "ordinary words", "unknown words")
    zeros = [0.0] * DIMENSION
    async with await store.draft(RECIPE) as draft:
        await draft.put(page_of(SITE + "/a", chunks), chunks, {chunks[0].id: axis(0), chunks[1].id: zeros})
        await draft.publish()
    live = await store.live()
    assert sorted(await found(live, "words")) == ["ordinary words", "unknown words"]
    leg = (await live.search(semantic(axis(0)))).vector
    assert leg[0].id == chunks[0].id
    assert all(c.score == pytest.approx(0.0, abs=1e-3) for c in leg[1:])
    assert all(math.isfinite(c.score) for c in (await live.search(semantic(zeros))).vector)


# ---- neighbours, and the whole search ----------------------------------------------------------


async def test_neighbours_are_in_page_order_also_after_an_insert(store):
    await publish(store, {"/a": ["one", "two", "three", "four"], "/b": ["other"]})
    await publish(store, {"/a": ["one", "inserted", "two", "three", "four"]})
    live = await store.live()
    one, inserted, two, three, four = await live.fetch((await live.page(SITE + "/a")).chunk_ids)
    assert await live.neighbours(two, 1) == (inserted, three)
    assert await live.neighbours(two, 9) == (one, inserted, three, four)
    assert await live.neighbours(one, 1) == (inserted,)
    assert await live.neighbours(four, 2) == (two, three)
    assert await live.neighbours(two, 0) == ()


async def test_a_chunk_that_is_gone_has_no_neighbours(store):
    await publish(store, {"/a": ["one", "two"]})
    assert await (await store.live()).neighbours(chunks_of(SITE + "/a", "gone")[0], 2) == ()
    assert await (await store.live()).neighbours(chunks_of(SITE + "/gone", "one")[0], 2) == ()


async def test_the_reader_s_language_is_preferred_not_required(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/cs/a", "kubernetes quota", language="cs")
        await put(draft, SITE + "/en/a", "kubernetes quota", language="en")
        await draft.publish()
    live = await store.live()
    for language in ("cs", "en"):
        query = Query(
            texts=(LexicalText(language, "kubernetes quota"),), vector=vector("kubernetes quota"), language=language
        )
        hits = await search(live, query)
        assert hits[0].chunk.language == language
        assert len(hits) == 2
        assert hits[1].fused < hits[0].fused


async def test_a_search_brings_hits_with_their_raw_scores(store):
    await publish(store, {"/a": ["storage quota", "storage limits", "storage"], "/b": ["storage of things"]})
    live = await store.live()
    query = Query(
        texts=(LexicalText("en", "storage quota"),), vector=vector("storage quota"), language="en", limit=3, per_page=2
    )
    hits = await search(live, query)
    legs = await live.search(query)
    raw = {c.id: c.score for c in legs.lexical}
    assert hits[0].chunk.text == "storage quota"
    assert sorted(h.chunk.url for h in hits) == [SITE + "/a", SITE + "/a", SITE + "/b"]
    assert [h.lexical for h in hits] == pytest.approx([raw[h.chunk.id] for h in hits])
    assert hits[0].cosine == pytest.approx(1.0, abs=1e-3)
    assert [h.fused for h in hits] == sorted((h.fused for h in hits), reverse=True)


async def test_a_search_without_evidence_finds_nothing(store):
    await publish(store, {"/a": ["storage"]})
    assert await search(await store.live(), lexical("unheard")) == ()
    assert await search(await store.live(), Query(texts=())) == ()


async def test_frequencies_count_the_chunks_of_the_pinned_generation(store):
    await publish(store, {"/a": ["disk quota quota", "disks and files"], "/b": ["file"]})
    first = await store.live()
    asked = ["disk~", "quota", "file~", "a", "nothing", 'od"d \\ (', "file~"]
    assert await first.frequencies(asked) == {"disk~": 2, "quota": 1, "file~": 2, "a": 3, "nothing": 0, 'od"d \\ (': 0}
    await publish(store, {"/c": ["quota"]})
    assert (await first.frequencies(["quota"]))["quota"] == 1
    assert (await (await store.live()).frequencies(["quota"]))["quota"] == 2
    assert await first.frequencies([]) == {}
    live = await store.live()
    counts = await asyncio.gather(*(live.frequencies(["quota"]) for _ in range(5)))
    assert all(count == {"quota": 2} for count in counts)


# ---- summaries of pages -------------------------------------------------------------------------

SUMMARISED = replace(RECIPE, summaries="prompt-1")


async def put_summarised(draft: Draft, path: str, summary: str, *texts: str, of: Vector | None = None, **values):
    """Put a page whose summary has the given vector, or that of its words; each chunk points along an axis of its own."""
    chunks = chunks_of(SITE + path, *texts, language=values.get("language", "en"))
    missing = {c.id for c in await draft.missing(chunks)}
    vectors = {c.id: axis(c.position + 1) for c in chunks if c.id in missing}
    if summary:
        vectors[SITE + path] = vector(summary) if of is None else of
    await draft.put(page_of(SITE + path, chunks, summary=summary, **values), chunks, vectors)


async def summarised(store: Store, recipe: Recipe = SUMMARISED) -> None:
    async with await store.draft(recipe) as draft:
        await put_summarised(draft, "/a", "about a", "first of a", "second of a", of=axis(0))
        await put_summarised(draft, "/b", "", "first of b", "second of b")
        await draft.publish()


def tilted(near: int, share: float) -> Vector:
    """Along axis 0, and a little along another one."""
    return [math.sqrt(1 - share**2) if i == 0 else share if i == near else 0.0 for i in range(DIMENSION)]


@pytest.mark.parametrize("exact", [False, True])
async def test_a_summary_finds_its_page_and_the_page_s_own_best_chunk_answers(store, exact):
    """The question is like no chunk, but like the summary of /a; its vector tells which chunk of /a is the best."""
    await summarised(store)
    live = await store.live()
    legs = await live.search(semantic(tilted(2, 0.1), exact=exact))
    chunks = await live.fetch([c.id for c in legs.vector])
    assert [c.text for c in chunks][:2] == ["second of a", "first of a"]
    scores = [c.score for c in legs.vector]
    assert scores[0] == pytest.approx(math.sqrt(0.99), abs=1e-3)
    assert scores[0] - scores[1] == pytest.approx(0.1, abs=1e-3)
    assert max(scores[2:]) == pytest.approx(0.1, abs=1e-3)


async def test_a_page_that_only_its_summary_finds_is_found(store):
    """With room for two candidates its chunks aren't among the nearest; the best of them takes the summary's place."""
    question = [0.8, 0.0, 0.1, 0.5] + [0.0] * (DIMENSION - 4)
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/a", "", "first of a", "second of a", "third of a")
        await put_summarised(draft, "/b", "", "first of b", "second of b", "third of b")
        await put_summarised(draft, "/c", "about c", "first of c", "second of c", of=question)
        await draft.publish()
    assert set(await near(await store.live(), question, depth=3)) >= {"third of a", "third of b"}
    (first, second) = await near(await store.live(), question, depth=2)
    assert first == "second of c"
    assert second in {"third of a", "third of b"}


async def test_summaries_are_never_shown_nor_searched_by_words_nor_counted(store):
    await summarised(store)
    live = await store.live()
    assert (live.info.pages, live.info.chunks) == (2, 4)
    assert await found(live, "about") == []
    assert await live.frequencies(["about"]) == {"about": 0}
    legs = await live.search(Query(texts=(LexicalText("en", "first about"),), vector=axis(0)))
    ids = {c.id for page in await live.pages() for c in await live.fetch(page.chunk_ids)}
    assert {c.id for c in (*legs.lexical, *legs.vector)} <= ids
    page = await live.page(SITE + "/a")
    assert (page.summary, len(page.chunk_ids)) == ("about a", 2)


async def test_filters_apply_to_summaries(store):
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/en", "about", "english", of=axis(0), language="en")
        await put_summarised(draft, "/cs", "o tom", "česky", of=axis(0), language="cs")
        await draft.publish()
    live = await store.live()
    for filters, text in ((Filters(languages=("cs",)), "česky"), (Filters(url_prefixes=(SITE + "/en",)), "english")):
        assert await near(live, axis(0), filters=filters) == [text]
    assert await near(live, axis(0), filters=Filters(collections=("other",))) == []


async def test_a_changed_or_lost_summary_replaces_the_old_one(store):
    """Only the summary is written: the chunks have their vectors. Older generations keep theirs."""
    await summarised(store)
    before = await store.live()
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/a", "", "first of a", "second of a")
        await put_summarised(draft, "/b", "now about b", "first of b", "second of b", of=axis(0))
        await draft.publish()
    assert set((await near(await store.live(), axis(0)))[:2]) == {"first of b", "second of b"}
    assert set((await near(before, axis(0)))[:2]) == {"first of a", "second of a"}
    async with await store.draft(SUMMARISED) as draft:
        await draft.remove(SITE + "/b")
        await draft.publish()
    legs = await (await store.live()).search(semantic(axis(0)))
    assert [c.score for c in legs.vector] == [pytest.approx(0, abs=1e-3)] * 2


async def test_an_untouched_page_keeps_its_summary(store, open_store):
    await summarised(store)
    async with await store.draft(SUMMARISED) as draft:
        await draft.touch([replace(page, etag="2") for page in (await draft.page_states()).values()])
        await put_summarised(draft, "/c", "about c", "first of c")
        await draft.publish()
    live = await (await open_store()).live()
    assert set((await near(live, axis(0)))[:2]) == {"first of a", "second of a"}
    assert (await live.page(SITE + "/a")).summary == "about a"


async def test_a_page_that_leads_to_another_one_is_not_found_by_its_summary(store):
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/a", "about a", "first of a", of=axis(5))
        page = page_of(SITE + "/copy", (), summary="about a", same_as=SITE + "/a")
        await draft.put(page, (), {})
        await draft.publish()
    assert await near(await store.live(), axis(5)) == ["first of a"]


async def test_summaries_are_part_of_the_recipe(store):
    """Turning them on, or another prompt, rebuilds beside the live index; without them none is searched or asked for."""
    await summarised(store, RECIPE)
    live = await store.live()
    assert live.info.recipe.summaries == ""
    assert [c.score for c in (await live.search(semantic(axis(0)))).vector] == [pytest.approx(0, abs=1e-3)] * 4
    for recipe in (SUMMARISED, replace(RECIPE, summaries="prompt-2")):
        async with await store.draft(recipe) as draft:
            assert draft.rebuilds
    await summarised(store)
    assert (await store.live()).info.recipe == SUMMARISED


@pytest.mark.parametrize(("vectors", "error"), [({}, StoreError), ({SITE + "/a": [1.0]}, IndexMismatch)])
async def test_a_summary_without_a_fitting_vector_is_refused(store, vectors, error):
    async with await store.draft(SUMMARISED) as draft:
        with pytest.raises(error, match="summary"):
            await draft.put(page_of(SITE + "/a", (), summary="about a"), (), vectors)


async def test_a_summary_without_direction_finds_nothing(store):
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/a", "about a", "first of a", of=[0.0] * DIMENSION)
        await draft.publish()
    assert await near(await store.live(), axis(1)) == ["first of a"]
