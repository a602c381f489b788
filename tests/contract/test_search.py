"""Searching: the two legs with their raw scores, and what becomes one ranking of them."""

import asyncio
from dataclasses import replace

import pytest

from app.core.types import LexicalText, Query, Section
from tests.contract.pages import (
    DIMENSION,
    RECIPE,
    SITE,
    axis,
    chunks_of,
    found,
    lexical,
    near,
    page_of,
    publish,
    put,
    put_chunks,
    search,
    semantic,
    vector,
)

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


async def test_identifiers_are_found_whole_and_in_parts(store):
    questions = {
        "Set the label app.kubernetes.io/name on it": ("app.kubernetes.io/name", "kubernetes"),
        "resources: nvidia.com/gpu: 1": ("nvidia.com/gpu", "gpu"),
        "export my_var=1": ("my_var",),
        "apply --dry-run=server": ("--dry-run",),
        "It said ERR_CONNECTION_REFUSED.": ("ERR_CONNECTION_REFUSED",),
    }
    await publish(store, {f"/{number}": [text] for number, text in enumerate(questions)})
    live = await store.live()
    for text, asked in questions.items():
        for question in asked:
            assert await found(live, question) == [text], question


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


# ---- the whole search --------------------------------------------------------------------------


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


async def test_the_centre_of_a_language_is_the_mean_of_its_chunks(store):
    async with await store.draft(RECIPE) as draft:
        english = await put(draft, SITE + "/en", "volume disk", "node", language="en")
        czech = await put(draft, SITE + "/cs", "svazek", language="cs")
        await draft.publish()
    centres = await (await store.live()).language_centres()
    for language, chunks in (("en", english), ("cs", czech)):
        rows = [vector(chunk.text) for chunk in chunks]
        mean = [sum(values) / len(rows) for values in zip(*rows, strict=True)]
        assert centres[language] == pytest.approx(mean, abs=1e-6)
    assert set(centres) == {"en", "cs"}


async def test_the_vocabulary_completes_and_corrects_words(store):
    await publish(store, {"/a": ["volume snapshot", "volume claim"], "/b": ["volunteer Zálohování docs_top_k"]})
    vocabulary = await (await store.live()).vocabulary()
    assert vocabulary.completions("volu", 5) == ("volume", "volunteer")
    assert vocabulary.completions("volu", 1) == ("volume",)
    assert vocabulary.completions("zaloh", 5) == ("zalohovani",)
    assert "docs_top_k" in vocabulary.completions("docs_", 5)
    assert vocabulary.completions("x", 5) == ()
    assert (vocabulary.count("volume"), vocabulary.count("nothing")) == (2, 0)
    for word, whole, corrected in (
        ("volumw", True, "volume"), ("snapshto", True, "snapshot"), ("snapsoh", False, "snapsho"), ("tnapshot", True, "tnapshot"),
        ("snap", False, "snap"), ("abcdef", True, "abcdef"), ("volumes1", True, "volumes1"),
    ):  # fmt: skip
        assert vocabulary.corrected(word, whole=whole) == corrected, word
