"""Questions of chunks lift their chunk in both legs of every store, and are never counted as chunks."""

from dataclasses import replace

import pytest

from app.core.errors import IndexMismatch, StoreError
from app.core.types import Filters, LexicalText, Query, Vector
from app.index.protocols import Draft
from tests.contract.pages import (
    DIMENSION,
    RECIPE,
    SITE,
    axis,
    chunks_of,
    found,
    leaning,
    near,
    only_found_indirectly,
    page_of,
    semantic,
)

ASKING = replace(RECIPE, questions="prompt-1")


async def put_asked(draft: Draft, path: str, asked: dict[int, str], *texts: str, of: Vector, **values):
    """Put a page; the chunks at these positions have Czech questions with this vector, each text an axis of its own."""
    plain = chunks_of(SITE + path, *texts, language=values.get("language", "en"))
    chunks = [replace(c, questions=(("cs", asked[c.position]),)) if c.position in asked else c for c in plain]
    missing = {c.id for c in await draft.missing(chunks)}
    vectors = {c.id: axis(c.position + 1) for c in chunks if c.id in missing}
    vectors |= {c.questions_id: of for c in chunks if c.questions}
    await draft.put(page_of(SITE + path, chunks, **values), chunks, vectors)


@pytest.mark.parametrize("exact", [False, True])
async def test_questions_find_their_chunk_by_words_and_by_vectors(store, exact):
    async with await store.draft(ASKING) as draft:
        await put_asked(draft, "/a", {1: "Kolik místa mám?"}, "first of a", "second of a", of=axis(0))
        await put_asked(draft, "/b", {}, "first of b", of=axis(0))
        await draft.publish()
    live = await store.live()
    assert (live.info.pages, live.info.chunks) == (2, 3)
    legs = await live.search(semantic(axis(0), exact=exact))
    (asked,) = legs.indirect["questions"]
    (chunk,) = await live.fetch([asked.id])
    assert (chunk.text, chunk.questions) == ("second of a", (("cs", "Kolik místa mám?"),))
    assert asked.score == pytest.approx(1, abs=1e-3)
    assert max(one.score for one in legs.vector) == pytest.approx(0, abs=1e-3)
    words = await live.search(Query((LexicalText("cs", "místo"),)))
    assert [candidate.id for candidate in words.lexical] == [chunk.id]
    only = Filters(url_prefixes=(SITE + "/b",))
    assert await near(live, axis(0), filters=only) == ["first of b"]
    (known,) = (await live.chunks_of([SITE + "/b"]))[SITE + "/b"]
    assert known.questions == ()


async def test_changed_questions_replace_the_old_ones_and_the_text_keeps_its_vector(store, open_store):
    """Also where a chunk gets its first questions, or loses them; an earlier generation keeps its own."""
    async with await store.draft(ASKING) as draft:
        await put_asked(draft, "/a", {0: "Kolik místa?", 2: "Proč?"}, "first", "second", "third", of=axis(0))
        await draft.publish()
    before = await store.live()
    async with await store.draft(ASKING) as draft:
        assert not await draft.missing(chunks_of(SITE + "/a", "first", "second", "third"))
        await put_asked(draft, "/a", {1: "Kde jsou zálohy?", 2: "Proč?"}, "first", "second", "third", of=axis(5))
        await draft.publish()
    live = await (await open_store()).live()
    assert (await near(live, axis(2)))[:1] == ["second"]
    assert (await near(live, axis(1)))[:1] == ["first"]
    assert (await live.search(semantic(axis(5)))).indirect["questions"][0].score == pytest.approx(1, abs=1e-3)
    assert await found(live, "zálohy") == ["second"]
    assert await found(live, "místa") == []
    assert await found(before, "místa") == ["first"]


@pytest.mark.parametrize(("vector", "error"), [(None, StoreError), ([1.0], IndexMismatch)])
async def test_questions_without_a_fitting_vector_are_refused(store, vector, error):
    (chunk,) = (replace(c, questions=(("en", "Why?"),)) for c in chunks_of(SITE + "/a", "first"))
    vectors = {chunk.id: axis(1)} | ({chunk.questions_id: vector} if vector else {})
    async with await store.draft(ASKING) as draft:
        with pytest.raises(error, match="questions"):
            await draft.put(page_of(SITE + "/a", [chunk]), [chunk], vectors)


async def test_questions_are_part_of_the_recipe(store):
    """Turning them on, or another prompt, builds the index anew beside the live one; a zero vector finds nothing."""
    async with await store.draft(ASKING) as draft:
        await put_asked(draft, "/a", {0: "Kolik?"}, "first", of=[0.0] * DIMENSION)
        await draft.publish()
    assert await near(await store.live(), axis(1)) == ["first"]
    for recipe in (RECIPE, replace(RECIPE, questions="prompt-2")):
        async with await store.draft(recipe) as draft:
            assert draft.rebuilds


async def test_a_chunk_that_only_its_questions_find_is_among_the_best_hits(store):
    """Words and vectors hardly tell 30 pages apart, and both put it last; its questions are clearly the nearest."""
    async with await store.draft(ASKING) as draft:
        for n in range(30):
            wanted = n == 17
            (plain,) = chunks_of(f"{SITE}/p{n:02}", f"a disk of kind {n}")
            chunk = replace(plain, questions=(("en", f"why {n}"),))
            own, asked = (0.4, 0.8) if wanted else (0.4 + (n % 7) / 100, 0.1 + (n % 7) / 100)
            vectors = {chunk.id: leaning(own, 1 + n % 15), chunk.questions_id: leaning(asked, 1 + n % 15)}
            await draft.put(page_of(chunk.url, (chunk,)), (chunk,), vectors)
        await draft.publish()
    await only_found_indirectly(await store.live(), SITE + "/p17")
