"""A page is found in any of its languages, and the reader's translation is the hit; the same on every store."""

from dataclasses import replace

import pytest

from app.core.types import Chunk, Filters, Hit, LexicalText, Query, Section
from app.index.protocols import Generation, Store
from tests.contract.pages import RECIPE, SITE, chunks_of, page_of, search, vector

EN, CS = f"{SITE}/en/disk", f"{SITE}/cs/disk"


def sectioned(url: str, language: str, *sections: tuple[str, str]) -> tuple[Chunk, ...]:
    """A chunk for each section: its anchor and its text."""
    made = chunks_of(url, *(text for _, text in sections), language=language, title=f"Disk {language}")
    paths = [(f"Disk {language}", f"{anchor} {language}") for anchor, _ in sections]
    return tuple(
        replace(chunk, sections=(Section(0, path, anchor),))
        for chunk, path, (anchor, _) in zip(made, paths, sections, strict=True)
    )


ENGLISH = sectioned(EN, "en", ("make", "create a volume"), ("resize", "grow volume LUM-1314"), ("drop", "remove it"))
CZECH = sectioned(CS, "cs", ("make", "založit svazek"), ("resize", "zvětšit"), ("drop", "smazat"))


async def published(store: Store, *pages: tuple[Chunk, ...], set_: str = EN) -> Generation:
    async with await store.draft(RECIPE, rebuild=True) as draft:
        for chunks in pages:
            known = {"translation_set": set_} if chunks[0].url in {EN, CS} else {}
            await draft.put(
                page_of(chunks[0].url, chunks, **known), chunks, {one.id: vector(one.text) for one in chunks}
            )
        await draft.publish()
    return await store.live()


def asked(text: str, language: str = "cs", **more: object) -> Query:
    return Query((LexicalText("en", text),), language=language, **more)  # type: ignore[arg-type]


async def links(generation: Generation, query: Query) -> list[str]:
    return [hit.chunk.link.removeprefix(SITE) for hit in await search(generation, query)]


async def test_a_hit_in_another_language_is_shown_in_the_reader_s(store: Store) -> None:
    """The section of the same anchor, else at the same place, with the scores of the version that was found."""
    generation = await published(store, ENGLISH, CZECH)
    (hit,) = await search(generation, asked("grow volume", limit=1))
    assert (hit.chunk.link, hit.found_in, hit.chunk.language) == (f"{CS}#resize", "en", "cs")
    assert hit.lexical
    assert await links(generation, asked("grow volume", "en", limit=1)) == ["/en/disk#resize"]
    moved = sectioned(CS, "cs", ("a", "založit svazek"), ("b", "zvětšit"), ("c", "smazat"))
    assert await links(await published(store, ENGLISH, moved), asked("grow volume", limit=1)) == ["/cs/disk#b"]


async def test_the_places_go_to_different_pages(store: Store) -> None:
    """No version of a page stands beside it, whatever the reader's language, and both versions' words find it."""
    others = [chunks_of(f"{SITE}/en/other-{n}", f"volume {n}") for n in range(3)]
    generation = await published(store, ENGLISH, CZECH, *others)
    for language in ("cs", "en", "de"):
        hits = await search(generation, asked("volume svazek", language, limit=5, per_page=1))
        assert len({hit.chunk.url for hit in hits} & {EN, CS}) == 1
        assert len(hits) == 4
    assert (await links(generation, asked("svazek", "en", limit=1))) == ["/en/disk#make"]


async def test_what_the_reader_s_version_lacks_stays_in_the_other_language(store: Store) -> None:
    """A name that only the other version has is asked for; or nothing of the reader's says what was found."""
    short = CZECH[:1]
    generation = await published(store, ENGLISH, short)
    assert await links(generation, asked("volume lum-1314", limit=1)) == ["/en/disk#resize"]
    assert await links(generation, asked("remove", limit=1)) == ["/en/disk#drop"]
    assert await links(generation, asked("create volume", limit=1)) == ["/cs/disk#make"]


async def test_a_name_that_only_keywords_have_is_not_asked_for(store: Store) -> None:
    """A model writes it because it belongs to the subject, and a page has it in its language's own form, or needs none."""
    generation = await published(store, ENGLISH, CZECH)
    keywords = asked("grow volume", limit=1)
    keywords = replace(keywords, texts=(*keywords.texts, LexicalText("en", "LUM-1314")))
    assert await links(generation, keywords) == ["/cs/disk#resize"]


@pytest.mark.parametrize(
    "filters",
    [
        Filters(languages=("en",)),
        Filters(sections=("/en",)),
        Filters(url_prefixes=(f"{SITE}/en",)),
    ],
)
async def test_no_version_leads_beyond_what_may_be_searched(store: Store, filters: Filters) -> None:
    generation = await published(store, ENGLISH, CZECH)
    assert await links(generation, asked("grow volume", limit=1, filters=filters)) == ["/en/disk#resize"]


async def test_pages_without_versions_and_older_indices_are_as_they_were(store: Store) -> None:
    """And so is a page whose other version has left, or whose text another page has."""
    generation = await published(store, ENGLISH, CZECH, set_="")
    assert not (await generation.translation_sets()).of
    assert await links(generation, asked("grow volume", limit=1)) == ["/en/disk#resize"]
    assert not (await (await published(store, ENGLISH)).translation_sets()).of


async def test_a_changed_translation_set_is_a_new_generation(store: Store) -> None:
    """Though no chunk is written; and a record touched otherwise isn't one."""
    before = await published(store, ENGLISH, CZECH, set_="")
    async with await store.draft(RECIPE) as draft:
        states = await draft.page_states()
        await draft.touch(
            [replace(page, derived=replace(page.derived, translation_set=EN)) for page in states.values()]
        )
        assert {page.derived.translation_set for page in (await draft.page_states()).values()} == {EN}
        after = await draft.publish()
    assert after.id > before.info.id
    live = await store.live()
    assert {url: one.id for url, one in (await live.translation_sets()).of.items()} == {EN: EN, CS: EN}
    assert {page.derived.translation_set for page in await live.pages()} == {EN}
    assert await links(live, asked("grow volume", limit=1)) == ["/cs/disk#resize"]
    async with await store.draft(RECIPE) as draft:
        await draft.touch(
            [replace(page, fetch=replace(page.fetch, etag="2")) for page in (await draft.page_states()).values()]
        )
        assert (await draft.publish()).id == after.id
        assert {page.derived.translation_set for page in await (await store.live()).pages()} == {EN}
    async with await store.draft(RECIPE) as draft:
        await draft.touch(
            [
                replace(page, derived=replace(page.derived, translation_set=""))
                for page in (await draft.page_states()).values()
            ]
        )
        await draft.publish()
    assert not (await (await store.live()).translation_sets()).of


async def test_counterparts_are_read_once_and_by_one_call(store: Store) -> None:
    generation = await published(store, ENGLISH, CZECH)
    calls: list[str] = []

    class Counted:
        info = generation.info

        def __getattr__(self, name: str) -> object:
            calls.append(name)
            return getattr(generation, name)

    counted: Generation = Counted()  # type: ignore[assignment]
    for _ in range(2):
        assert [hit.chunk.url for hit in await search(counted, asked("grow volume", limit=1))] == [CS]
    assert calls == ["search", "translation_sets", "counterparts", "fetch", "search", "translation_sets", "fetch"]
    calls.clear()
    found: tuple[Hit, ...] = await search(counted, asked("zvětšit", limit=1))
    assert [hit.found_in for hit in found] == [""]
    assert "counterparts" not in calls


async def test_chunks_of_pages_are_in_the_order_of_the_page(store: Store) -> None:
    generation = await published(store, ENGLISH, CZECH)
    assert await generation.chunks_of({EN, CS, f"{SITE}/none"}) == {EN: ENGLISH, CS: CZECH}
    async with await store.draft(RECIPE) as draft:
        first = sectioned(EN, "en", ("new", "a new beginning"))
        whole = (*first, *ENGLISH)
        await draft.put(page_of(EN, whole), whole, {one.id: vector(one.text) for one in first})
        await draft.publish()
    made = (await (await store.live()).chunks_of({EN}))[EN]
    assert [one.id for one in made] == [one.id for one in whole]
