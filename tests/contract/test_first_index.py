"""An empty store, and what a first run makes of it: what was put comes back."""

from dataclasses import replace
from datetime import datetime

import pytest

from app.core.errors import NoIndex
from app.core.types import Chunk, Derived, PlainText, Section
from tests.contract.pages import RECIPE, SITE, chunks_of, page_of, put, put_chunks, vector


async def test_before_the_first_publish_there_is_no_index(store):
    with pytest.raises(NoIndex):
        await store.live()
    with pytest.raises(NoIndex):
        await store.rollback()
    assert await store.generations() == ()


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


async def test_plain_texts_come_back_whole_and_only_on_their_own(store):
    """With the places of their chunks; what is known of a page's fetch may change without them."""
    first, other = chunks_of(SITE + "/a", "one", "two"), chunks_of(SITE + "/b", "three")
    places = {first[0].id: (0, 5), first[1].id: (5, 8)}
    plain = PlainText("one\n\ntwo — „é“", (0, 5, 13), (Section(0, ("A", "B"), "b"), Section(5, ())), places)
    pages = [replace(page_of(SITE + "/a", first), derived=Derived(plain=plain)), page_of(SITE + "/b", other)]
    for page, chunks in zip(pages, (first, other), strict=True):
        async with await store.draft(RECIPE) as draft:
            await draft.put(page, chunks, {c.id: vector(c.text) for c in chunks})
            await draft.publish()
    async with await store.draft(RECIPE) as draft:
        known = (await draft.page_states())[SITE + "/a"]
        await draft.touch([replace(known, fetch=replace(known.fetch, etag="new"))])
        await draft.publish()
    live = await store.live()
    texts = await live.plain_texts([SITE + "/b", SITE + "/a", SITE + "/unknown"])
    assert texts == {SITE + "/a": plain, SITE + "/b": PlainText()}
    assert await live.plain_texts([]) == {}
    assert (await live.page(SITE + "/a")).fetch.etag == "new"
    assert all(page.derived.plain == PlainText() for page in (*await live.pages(), await live.page(SITE + "/a")))


async def test_a_chunk_that_only_moved_is_not_written_again(store):
    """Where it stands now is told by its page."""
    chunks = chunks_of(SITE + "/a", "one")
    for start in (0, 7):
        moved = [replace(chunk, start=start, end=start + 1) for chunk in chunks]
        plain = PlainText("x", (0, 1), (), {chunks[0].id: (start, 9)})
        page = replace(page_of(SITE + "/a", chunks), derived=Derived(plain=plain))
        async with await store.draft(RECIPE) as draft:
            missing = await draft.missing(moved)
            await draft.put(page, moved, {c.id: vector(c.text) for c in missing})
            await draft.publish()
    live = await store.live()
    assert not missing
    assert await live.fetch([chunks[0].id]) == chunks
    assert (await live.plain_texts([page.url]))[page.url].places == {chunks[0].id: (7, 9)}


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
    stored = replace(page, derived=replace(page.derived, chunk_ids=tuple(c.id for c in chunks)))
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
    assert (await (await store.live()).page(SITE + "/empty")).derived.chunk_ids == ()
