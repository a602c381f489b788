"""Questions, addresses and vectors that nobody expects are answered, kept, or refused by name."""

import math

import pytest

from app.core.errors import IndexMismatch
from app.core.types import Filters, LexicalText, Query
from tests.contract.pages import (
    DIMENSION,
    RECIPE,
    SITE,
    axis,
    chunks_of,
    found,
    lexical,
    page_of,
    publish,
    semantic,
    vector,
)

ODD_QUESTIONS = (
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
)


async def test_any_question_text_is_answered(store):
    await publish(store, {"/a": ["some ordinary text about quota"]})
    live = await store.live()
    for text in ODD_QUESTIONS:
        for language in ("en", "cs", "", "xx"):
            legs = await live.search(Query(texts=(LexicalText(language, text),), vector=vector("quota")))
            assert len(legs.vector) == 1, text
            assert len(legs.lexical) <= 1, text
    long = " ".join(f"word{i}" for i in range(3000))
    assert await found(live, f"quota {long} quota") == ["some ordinary text about quota"]


ODD_PATHS = (
    "/" + "long/" * 100,
    "/it's-quoted'",
    '/double"quote',
    "/back\\slash",
    "/příliš/žluťoučký?q=a&b=%20#x",
    "/{curly}[square](round)",
    "/a b\tc",
    "/--; DROP TABLE pages",
    "/emoji/🙂",
)


async def test_odd_addresses_are_addresses_like_others(store):
    await publish(store, {**{path: ["odd page"] for path in ODD_PATHS}, "/plain": ["plain page"]})
    live = await store.live()
    for url in (SITE + path for path in ODD_PATHS):
        assert (await live.page(url)).url == url
        legs = await live.search(lexical("odd", filters=Filters(url_prefixes=(url,))))
        assert [c.url for c in legs.lexical] == [url]
        assert (await live.fetch([legs.lexical[0].id]))[0].url == url
    async with await store.draft(RECIPE) as draft:
        assert await draft.page_states() == {page.url: page for page in await live.pages()}
        for path in ODD_PATHS:
            await draft.remove(SITE + path)
        await draft.publish()
    live = await store.live()
    assert await live.page(SITE + ODD_PATHS[0]) is None
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
