"""Summaries of pages lift the chunks of their page and are never found themselves."""

import math
from dataclasses import replace

import pytest

from app.core.errors import IndexMismatch, StoreError
from app.core.generation import Recipe
from app.core.types import Filters, LexicalText, Query, Vector
from app.index.protocols import Draft, Generation, Store
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
    vector,
)

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


async def by_summary(generation: Generation, values: Vector, **others) -> list[str]:
    """Texts of the leg of the summaries, best first."""
    legs = await generation.search(semantic(values, **others))
    return [chunk.text for chunk in await generation.fetch([c.id for c in legs.indirect.get("summaries", ())])]


@pytest.mark.parametrize("exact", [False, True])
async def test_a_summary_finds_its_page_and_the_page_s_own_best_chunk_answers(store, exact):
    """The question is like no chunk, but like the summary of /a; its vector tells which chunk of /a is the best."""
    await summarised(store)
    live = await store.live()
    legs = await live.search(semantic(tilted(2, 0.1), exact=exact))
    (found,) = legs.indirect["summaries"]
    assert [chunk.text for chunk in await live.fetch([found.id])] == ["second of a"]
    assert found.score == pytest.approx(math.sqrt(0.99), abs=1e-3)
    assert max(c.score for c in legs.vector) == pytest.approx(0.1, abs=1e-3)


async def test_a_page_whose_chunks_are_not_among_the_candidates_is_found(store):
    question = [0.8, 0.0, 0.1, 0.5] + [0.0] * (DIMENSION - 4)
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/a", "", "first of a", "second of a", "third of a")
        await put_summarised(draft, "/b", "", "first of b", "second of b", "third of b")
        await put_summarised(draft, "/c", "about c", "first of c", "second of c", of=question)
        await draft.publish()
    live = await store.live()
    assert set(await near(live, question, depth=2)) == {"third of a", "third of b"}
    assert await by_summary(live, question, depth=2) == ["second of c"]


async def test_a_page_that_only_its_summary_finds_is_among_the_best_hits(store):
    """Words and vectors hardly tell 30 pages apart, and both put it last; its summary is clearly the nearest."""
    async with await store.draft(SUMMARISED) as draft:
        for n in range(30):
            wanted = n == 17
            (chunk,) = chunks_of(f"{SITE}/p{n:02}", f"a disk of kind {n}")
            own, summary = (0.4, 0.8) if wanted else (0.4 + (n % 7) / 100, 0.1 + (n % 7) / 100)
            vectors = {chunk.id: leaning(own, 1 + n % 15), chunk.url: leaning(summary, 1 + n % 15)}
            await draft.put(page_of(chunk.url, (chunk,), summary=f"about {n}"), (chunk,), vectors)
        await draft.publish()
    await only_found_indirectly(await store.live(), SITE + "/p17")


async def test_summaries_are_never_shown_nor_searched_by_words_nor_counted(store):
    await summarised(store)
    live = await store.live()
    assert (live.info.pages, live.info.chunks) == (2, 4)
    assert await found(live, "about") == []
    assert await live.frequencies(["about"]) == {"about": 0}
    legs = await live.search(Query(texts=(LexicalText("en", "first about"),), vector=axis(0)))
    ids = {c.id for page in await live.pages() for c in await live.fetch(page.derived.chunk_ids)}
    assert {c.id for c in (*legs.lexical, *legs.vector)} <= ids
    page = await live.page(SITE + "/a")
    assert (page.derived.summary, len(page.derived.chunk_ids)) == ("about a", 2)


async def test_filters_apply_to_summaries(store):
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/en", "about", "english", of=axis(0), language="en")
        await put_summarised(draft, "/cs", "o tom", "česky", of=axis(0), language="cs")
        await draft.publish()
    live = await store.live()
    for filters, text in ((Filters(languages=("cs",)), "česky"), (Filters(url_prefixes=(SITE + "/en",)), "english")):
        assert await by_summary(live, axis(0), filters=filters) == [text]
    assert await by_summary(live, axis(0), filters=Filters(collections=("other",))) == []


async def test_a_changed_or_lost_summary_replaces_the_old_one(store):
    """Only the summary is written: the chunks have their vectors. Older generations keep theirs."""
    await summarised(store)
    before = await store.live()
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/a", "", "first of a", "second of a")
        await put_summarised(draft, "/b", "now about b", "first of b", "second of b", of=axis(0))
        await draft.publish()
    (of_b,), (of_a,) = await by_summary(await store.live(), axis(0)), await by_summary(before, axis(0))
    assert (of_b[-4:], of_a[-4:]) == ("of b", "of a")
    async with await store.draft(SUMMARISED) as draft:
        await draft.remove(SITE + "/b")
        await draft.publish()
    assert await by_summary(await store.live(), axis(0)) == []


async def test_a_page_that_leads_to_another_one_is_not_found_by_its_summary(store):
    async with await store.draft(SUMMARISED) as draft:
        await put_summarised(draft, "/a", "about a", "first of a", of=axis(5))
        page = page_of(SITE + "/copy", (), summary="about a", same_as=SITE + "/a")
        await draft.put(page, (), {})
        await draft.publish()
    assert await by_summary(await store.live(), axis(5)) == ["first of a"]


async def test_summaries_are_part_of_the_recipe(store):
    """Turning them on, or another prompt, rebuilds beside the live index; without them none is searched or asked for."""
    await summarised(store, RECIPE)
    live = await store.live()
    assert live.info.recipe.summaries == ""
    assert await by_summary(live, axis(0)) == []
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
