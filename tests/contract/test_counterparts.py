"""A run stores which chunks of a page say what those of its translation say, so that no question compares pages; the same on every store."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.core.settings import Settings
from app.core.types import Chunk, Derived, LexicalText, Page, Query
from app.index.protocols import Counterparts, Generation, Pair, Store
from app.index.ranking import counterparts as comparing
from app.index.ranking.counterparts import counterparts_of
from app.routes.html_pages import find_docs
from ingestion.split import open_splitter
from tests.contract.conftest import OpenStore
from tests.contract.pages import RECIPE, SITE, chunks_of, page_of, search, vector
from tests.test_cost import counted

NAMES = ("backup", "files", "languages", "replicas", "summaries")
QUESTIONS = (
    "How do I back up the conversations with sqlite3?",
    "Jak zálohuji konverzace?",
    "What does DOCS_TRANSLATIONS keep?",
    "Kolik replik smí být za jedním proxy?",
    "language.toml stop words of a new language",
    "Které soubory zapisuje noční běh?",
    "index.json restore",
)
Cut = tuple[Page, tuple[Chunk, ...]]


def documentation() -> list[Cut]:
    """Pages of our documentation in both languages, with their chunks."""
    splitter, made = open_splitter(Settings.load(None)), list[Cut]()
    for language in ("en", "cs"):
        for name in NAMES:
            text = (find_docs() / language / f"{name}.md").read_text("utf-8").split("---", 2)[2]
            of_set = Derived(translation_set=f"{SITE}/en/{name}")
            page = Page(f"{SITE}/{language}/{name}", "docs", name, language, text, name, derived=of_set)
            made.append((page, splitter.split(page)))
    return made


async def put(store: Store, pages: Sequence[Cut], *, rebuild: bool = False) -> int:
    """The number of the generation after a run that writes these pages."""
    async with await store.draft(RECIPE, rebuild=rebuild) as draft:
        for page, chunks in pages:
            await draft.put(page, chunks, {chunk.id: vector(chunk.text) for chunk in chunks})
        return (await draft.publish()).id


async def nothing_new(store: Store) -> int:
    """The number of the generation after a run that writes no page."""
    async with await store.draft(RECIPE) as draft:
        return (await draft.publish()).id


class Compared:
    """A generation in which no run has stored counterparts."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generation, name)

    async def counterparts(self, pairs: Collection[Pair]) -> Mapping[Pair, Counterparts]:
        return await counterparts_of(pairs, {}, self._generation.chunks_of)


async def stored(generation: Generation) -> dict[str, tuple[str, ...]]:
    """What each page has stored, by address."""
    return {page.url: page.derived.counterparts for page in await generation.pages()}


def asked(text: str, language: str) -> Query:
    return Query((LexicalText(language, text),), vector(text), language, limit=8, per_page=2)


async def rankings(generation: Generation) -> list[list[tuple[str, float, str]]]:
    """The hits of each question to readers of both languages."""
    return [
        [(hit.chunk.id, hit.fused, hit.found_in) for hit in await search(generation, asked(text, language))]
        for text in QUESTIONS
        for language in ("en", "cs")
    ]


async def ranks_as_compared(open_store: OpenStore) -> None:
    """Checks that each question is answered as if its pages were compared now."""
    live = await (await open_store()).live()
    compared: Generation = Compared(await (await open_store()).live())  # type: ignore[assignment]
    assert await rankings(live) == await rankings(compared)


async def test_what_is_stored_is_what_comparing_finds_and_ranks_the_same(open_store: OpenStore) -> None:
    """In both directions."""
    await put(await open_store(), documentation())
    live, other = await (await open_store()).live(), await (await open_store()).live()
    compared: Generation = Compared(other)  # type: ignore[assignment]
    pairs = [
        (f"{SITE}/{one}/{name}", f"{SITE}/{two}/{name}") for name in NAMES for one, two in (("en", "cs"), ("cs", "en"))
    ]
    found = await live.counterparts(pairs)
    assert found == await compared.counterparts(pairs)
    assert all(found[pair].of for pair in pairs)
    assert any(found[pair].only_there for pair in pairs)
    of_questions = await rankings(live)
    assert of_questions == await rankings(compared)
    assert any(found_in for hits in of_questions for _, _, found_in in hits)


async def test_no_question_compares_pages(open_store: OpenStore) -> None:
    await put(await open_store(), documentation())
    live, other = await (await open_store()).live(), await (await open_store()).live()
    compared: Generation = Compared(other)  # type: ignore[assignment]
    with counted() as calls:
        await rankings(live)
    with counted() as before:
        await rankings(compared)
    functions = [f"app/index/ranking/counterparts.py {name}" for name in ("counterparts", "Comparable.names")]
    assert all(before[name] for name in functions)
    assert not any(calls[name] for name in functions)
    # of the questions themselves, which are not pages
    assert calls["app/text/marks.py names"] <= 2 * len(QUESTIONS)
    assert not calls["app/text/marks.py marks"]


async def test_a_run_that_changes_nothing_stores_nothing(store: Store) -> None:
    first = await put(store, documentation())
    before = await stored(await store.live())
    assert all(before.values())
    async with await store.draft(RECIPE) as draft:
        known = await draft.page_states()
        assert (await draft.publish()).id == first
        assert await draft.page_states() == known
    assert await stored(await store.live()) == before


async def test_a_changed_page_is_compared_again_with_its_translations_alone(open_store: OpenStore) -> None:
    """Also where its chunks stay, such as after another anchor, and the generation before it ranks as it did."""
    store = await open_store()
    pages = documentation()
    await put(store, pages)
    before = await stored(await store.live())
    page, chunks = pages[0]
    await put(store, [(page, chunks[1:])])
    after = await stored(await (await open_store()).live())
    changed = {url for url in before if before[url] != after[url]}
    assert changed == {f"{SITE}/en/{NAMES[0]}", f"{SITE}/cs/{NAMES[0]}"}
    await ranks_as_compared(open_store)
    await store.rollback()
    await ranks_as_compared(open_store)
    await put(store, [(page, [replace(one, sections=()) for one in chunks])])
    unanchored = await stored(await store.live())
    assert {url for url in before if before[url] != unanchored[url]} <= changed
    await ranks_as_compared(open_store)


async def test_a_page_that_leaves_its_set_keeps_nothing_of_it(store: Store) -> None:
    pages = documentation()
    await put(store, pages)
    async with await store.draft(RECIPE) as draft:
        await draft.remove(pages[0][0].url)
        await draft.publish()
    found = await stored(await store.live())
    assert [url for url, kept in found.items() if not kept] == [pages[0][0].url.replace("/en/", "/cs/")]
    async with await store.draft(RECIPE) as draft:
        states = (await draft.page_states()).values()
        await draft.touch([replace(one, derived=replace(one.derived, translation_set="")) for one in states])
        await draft.publish()
    assert not any((await stored(await store.live())).values())


async def test_an_index_that_has_no_counterparts_of_this_version_is_compared_until_the_next_run(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which stores what it finds, without a new generation."""
    with monkeypatch.context() as earlier:
        earlier.setattr(comparing, "COMPARISON", "earlier")
        first = await put(await open_store(), documentation())
        old = await stored(await (await open_store()).live())
    live = await (await open_store()).live()
    compared: Generation = Compared(await (await open_store()).live())  # type: ignore[assignment]
    assert await rankings(live) == await rankings(compared)
    assert await nothing_new(await open_store()) == first
    live = await (await open_store()).live()
    new = await stored(live)
    assert all(new[url] != old[url] for url in old)
    with counted() as calls:
        assert await rankings(live) == await rankings(compared)
    assert await nothing_new(await open_store()) == first
    assert calls["app/index/ranking/counterparts.py counterparts"] == 0


async def test_many_translations_are_compared_a_part_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three languages each page has two."""
    monkeypatch.setattr(comparing, "CHUNKS_AT_ONCE", 4)
    cut: list[Cut] = []
    for number in range(5):
        for language in ("en", "cs", "de"):
            url = f"{SITE}/{language}/{number}"
            chunks = chunks_of(url, f"`code-{number}` {language}", "`other`", language=language)
            cut.append((page_of(url, chunks, translation_set=f"{SITE}/en/{number}"), chunks))
    await put(store, cut)
    live = await store.live()
    assert {len(kept) for kept in (await stored(live)).values()} == {2}
    pair = (f"{SITE}/de/3", f"{SITE}/cs/3")
    (found,) = (await live.counterparts([pair])).values()
    ours = (await live.chunks_of([pair[1]]))[pair[1]]
    assert list(found.of.values()) == [one.id for one in ours]
    assert await asyncio.gather(*(live.counterparts([pair]) for _ in range(3))) == [{pair: found}] * 3
