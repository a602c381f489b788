"""Stretches of sentences, items and rows, searched beside the chunks in every store."""

import math
from dataclasses import replace

import pytest

from app.index.ranking.fuse import OF_UNITS, leg_scores, rank
from app.index.ranking.units import means, nearness, texts_to_embed, with_units
from tests.contract.pages import RECIPE, SITE, axis, chunks_of, page_of, publish, put_chunks, semantic, vector

ROWS = "| setting | what |\n|---|---|\n" + "".join(f"| colour {n} | of the page {'and more ' * 9}|\n" for n in range(8))
FRAME = "\n\n".join(f"Which setting changes what? {'Each setting is a line of a file. ' * 10}" for _ in range(2))


async def put_with_units(draft, url, text, near=-1):
    """A chunk far from `axis(0)`, of whose stretches only that with this number is there."""
    (chunk,) = chunks = chunks_of(url, text)
    vectors = {key: axis(0 if number == near else 2) for number, key in enumerate(texts_to_embed(chunk))}
    assert len(vectors) > 1
    await draft.put(page_of(url, chunks), chunks, {chunk.id: axis(1), **vectors})
    return chunk


async def test_a_chunk_is_found_by_its_nearest_stretch(store):
    async with await store.draft(RECIPE) as draft:
        table = await put_with_units(draft, f"{SITE}/table", ROWS, near=1)
        frame = await put_with_units(draft, f"{SITE}/frame", FRAME)
        await draft.publish()
    live, query = await store.live(), semantic(axis(0), limit=2)
    legs = await with_units(live, await live.search(query), query)
    assert [(one.id, round(one.score, 2)) for one in legs.units] == [(table.id, 1.0), (frame.id, 0.0)]
    assert legs.nearest[table.id] == 1
    assert legs.meaning is None
    hits = await rank(live, legs, query)
    assert (hits[0].chunk.id, hits[0].stretch) == (table.id, 1)
    # the chunks themselves are equally far, so the weight of stretches decides
    _, vectors = leg_scores(legs, replace(query, lexical_weight=0.0, vector_weight=1.0))
    assert vectors[table.id] - vectors[frame.id] == pytest.approx(OF_UNITS)


def test_a_chunk_has_the_mean_of_its_stretches():
    """Only they are embedded; each weighs as much as its text is long. One stretch is the chunk itself."""
    chunks = (*chunks_of(f"{SITE}/table", ROWS), *chunks_of(f"{SITE}/short", "Only one line."))
    texts = texts_to_embed(chunks[0]) | texts_to_embed(chunks[1])
    assert texts[chunks[1].id] == chunks[1].embedded_text
    assert [text.splitlines()[-1] for key, text in texts.items() if key != chunks[1].id]
    vectors = {key: axis(number) for number, key in enumerate(texts)}
    found = means(chunks, vectors, texts)
    lengths = [len(text) for key, text in texts.items() if key != chunks[1].id]
    assert list(found) == [chunks[0].id]
    assert found[chunks[0].id][: len(lengths)] == pytest.approx([n / math.hypot(*lengths) for n in lengths])


async def test_what_all_texts_share_says_nothing_of_the_meaning(store, monkeypatch):
    """Vectors count from the centre of their language, which a few chunks don't have."""
    monkeypatch.setattr("app.index.ranking.units.FEWEST_CHUNKS", 2)
    async with await store.draft(RECIPE) as draft:
        await put_with_units(draft, f"{SITE}/frame", FRAME)
        await put_with_units(draft, f"{SITE}/table", ROWS)
        await draft.publish()
    live, query = await store.live(), semantic(axis(0), limit=2)
    legs = await with_units(live, await live.search(query), query)
    assert legs.units[0].score == pytest.approx(0.0)
    assert legs.meaning == pytest.approx(0.5)
    found = await nearness(live, axis(0), "en", {one.id: one.language for one in legs.units})
    assert (len(found), max(found.values())) == (2, pytest.approx(0.5))
    assert await nearness(live, axis(0), "en", {}) == await nearness(live, axis(0), "en", {"unknown": "en"}) == {}
    assert await nearness(live, axis(0), "en", dict.fromkeys(found, "cs")) == {}


async def test_the_stretches_of_a_chunk_stay_when_only_its_date_changes(store):
    """Their vectors aren't computed again, as that of the chunk isn't."""
    async with await store.draft(RECIPE) as draft:
        chunk = await put_with_units(draft, f"{SITE}/table", ROWS, near=1)
        await draft.publish()
    before = await (await store.live()).units([chunk.id])
    async with await store.draft(RECIPE) as draft:
        await put_chunks(draft, [replace(chunk, modified="2026-11-25")])
        await draft.publish()
    live = await store.live()
    assert (await live.fetch([chunk.id]))[0].modified == "2026-11-25"
    assert await live.units([chunk.id, "unknown"]) == before != {}
    assert await live.units([]) == {}


async def test_a_chunk_without_vectors_of_stretches_has_its_own(store):
    """So an index to which another program writes ranks as before."""
    await publish(store, {"/a": ["red green", "blue"]})
    live, query = await store.live(), semantic(vector("blue"))
    legs = await live.search(query)
    with_them = await with_units(live, legs, query)
    assert [one.id for one in with_them.units] == [one.id for one in legs.vector]
    assert not with_them.nearest
    assert [hit.chunk.text for hit in await rank(live, with_them, query)] == ["blue", "red green"]
    words_only = replace(query, vector=None)
    assert await with_units(live, legs, words_only) is legs
