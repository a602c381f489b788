"""Filters keep to what they name, in both legs, and take no results from it."""

from dataclasses import replace

import pytest

from app.core.types import Filters, LexicalText, Query
from tests.contract.pages import RECIPE, SITE, chunks_of, page_of, put, search, vector

ODD = '/it\'s 100%_"quoted"\\*?[x]/'


async def three_kinds(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, SITE + "/en/a", "common english", language="en", collection="docs")
        await put(draft, SITE + "/cs/a", "common czech", language="cs", collection="docs")
        await put(draft, SITE + "/en/b", "common blog", language="en", collection='blog\'s "own"')
        await put(draft, SITE + ODD + "a", "common odd", language="en", collection="odd")
        await draft.publish()
    return await store.live()


async def both_legs(live, filters):
    query = Query(texts=(LexicalText("en", "common"),), vector=vector("common"), filters=filters)
    legs = await live.search(query)
    return legs.lexical, legs.vector


OF_KINDS: list[tuple[Filters, set[str]]] = [
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
]


async def test_filters_apply_to_both_legs(store):
    live = await three_kinds(store)
    for filters, expected in OF_KINDS:
        for leg in await both_legs(live, filters):
            chunks = await live.fetch([c.id for c in leg])
            assert {c.text.removeprefix("common ") for c in chunks} == expected, filters


OF_PATHS: list[tuple[Filters, set[str]]] = [
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
    (Filters(versions=("1.0",)).narrowed(Filters(versions=("v1.0",))), {"old"}),
    (Filters(versions=("v2.0", "v1.0")).narrowed(Filters(versions=("2.0", "1.0"))), {"old"}),
    (Filters(url_prefixes=(SITE,)).narrowed(Filters(url_prefixes=("https://else.org/",))), set()),
    (Filters().narrowed(Filters(url_prefixes=("https://else.org/",))), {"other"}),
]


async def test_sections_and_versions_are_read_from_the_path(store):
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
        await draft.publish()
    live = await store.live()
    for filters, expected in OF_PATHS:
        for leg in await both_legs(live, filters):
            assert {pages[c.url] for c in leg} == expected, filters


SAYING = {
    f"{SITE}/old-docs/a": ("1.0",),
    f"{SITE}/docs/a": ("2.0", "latest"),
    f"{SITE}/docs/v1.0/a": (),
    f"{SITE}/docs/it's": ("it's-1",),
    f"{SITE}/plain": (),
}


async def saying(store, recipe=RECIPE):
    async with await store.draft(recipe) as draft:
        for position, (url, versions) in enumerate(SAYING.items()):
            chunks = tuple(replace(chunk, versions=versions) for chunk in chunks_of(url, f"common text{position}"))
            vectors = {chunk.id: vector(chunk.text) for chunk in chunks} | {url: vector("summary")}
            summary = "summary" if recipe.summaries else ""
            await draft.put(page_of(url, chunks, versions=versions, summary=summary), chunks, vectors)
        await draft.publish()
    return await store.live()


OF_VERSIONS: list[tuple[Filters, set[str]]] = [
    (Filters(), set(SAYING)),
    (Filters(versions=("1.0",)), {f"{SITE}/old-docs/a", f"{SITE}/docs/v1.0/a"}),
    (Filters(versions=("V1.0",)), {f"{SITE}/old-docs/a"}),
    (Filters(versions=("latest", "3.0")), {f"{SITE}/docs/a"}),
    (Filters(versions=("2",)), set()),
    (Filters(versions=("1.0",), sections=("/docs",)), {f"{SITE}/docs/v1.0/a"}),
    (Filters(versions=("2.0",), sections=("/old-docs",)), set()),
    (Filters(versions=("it's-1",)), {f"{SITE}/docs/it's"}),
    (Filters(versions=("1.0",)).narrowed(Filters(versions=("2.0",))), set()),
]


@pytest.mark.parametrize("summaries", ["", "prompt-1"])
async def test_pages_say_versions_that_their_address_does_not(store, summaries):
    """Both legs and the summaries are limited by them, and so is what may be read of the index otherwise."""
    live = await saying(store, replace(RECIPE, summaries=summaries))
    pages = await live.pages()
    assert {p.url: p.versions for p in pages} == SAYING
    for filters, expected in OF_VERSIONS:
        for leg in await both_legs(live, filters):
            assert {c.url: c.versions for c in leg} == {url: SAYING[url] for url in expected}, filters
        assert {p.url for p in pages if filters.admits(p.url, p.collection, {p.language}, p.versions)} == expected
    lexical, _ = await both_legs(live, Filters())
    assert all(chunk.versions == SAYING[chunk.url] for chunk in await live.fetch([c.id for c in lexical]))


async def test_a_question_that_names_what_a_page_says_finds_that_page(store):
    """Of one page at /docs/a and /docs/v1.0/a the current one is found, but the other where 1.0 is asked for."""
    live = await saying(store)
    query = Query(texts=(LexicalText("en", "common"),), filters=Filters(sections=("/docs",)))

    async def found(*versions: str) -> set[str]:
        return {hit.chunk.url for hit in await search(live, replace(query, versions=versions))} - {f"{SITE}/docs/it's"}

    assert await found() == await found("2.0") == {f"{SITE}/docs/a"}
    assert await found("1.0") == {f"{SITE}/docs/v1.0/a"}
    assert await found("1.0", "2.0") == {f"{SITE}/docs/a"}


async def test_a_page_that_says_another_version_is_written_anew_without_a_vector(store):
    """What it said before no longer finds it; earlier generations stay as they were."""
    await saying(store)
    url = f"{SITE}/docs/a"
    async with await store.draft(RECIPE) as draft:
        chunks = tuple(replace(chunk, versions=("3.0",)) for chunk in chunks_of(url, "common text1"))
        assert not await draft.missing(chunks)
        await draft.put(page_of(url, chunks, versions=("3.0",)), chunks, {})
        await draft.publish()
    live = await store.live()
    for version, expected in (("2.0", []), ("3.0", [url])):
        for leg in await both_legs(live, Filters(versions=(version,))):
            assert [c.url for c in leg] == expected


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
