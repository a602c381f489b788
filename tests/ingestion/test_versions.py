"""Versions that pages say of themselves: read from HTML and front matter, and kept with what is searched."""

import re

from app.core.types import Filters, LexicalText, Query
from ingestion.convert import SourceText, convert
from tests.ingestion.index import LONG, Index, outcomes
from tests.ingestion.local_site import LocalSite

URL = "https://docs.example.org/a"


def html(version: str, text: str = LONG) -> str:
    head = f'<meta name="docsearch:version" content="{version}">' if version else ""
    return f"<html lang=en><head>{head}</head><main><h1>A</h1><p>{text}</p></main></html>"


TAGS = {
    '<meta name="docsearch:version" content="1.2">': "1.2",
    '<meta data-rh="true" name="docsearch:version" content="1.2,latest">': "1.2,latest",
    '<meta name="docusaurus_version" content="3.9.2">': "3.9.2",
    '<meta name="readthedocs-version-slug" content="v1.2" />': "v1.2",
    '<meta name="version" content="7"><meta name="docsearch:version" content="1.2">': "1.2",
    '<meta name="Version" content=" 7 ">': "7",
    '<meta name="docsearch:version" content=""><meta name="version" content="7">': "7",
    '<meta name="generator" content="Docusaurus v3.9.2">': "",
}
FRONT = {"version: 1.2": "1.2", "version: 1.10": "1.10", "version: '2.x'": "2.x", "version: [1.9, 1.10]": "1.9,1.10"}
FRONT |= {"version: 2  # the newest": "2", "title: Harbor: a registry\nversion: 1.10": "1.10", "version:": ""}
FRONT |= {"version: {from: 1.2}": "", "base: &b\n  x: 1\nversion: 3": "3", "title: A": ""}


def test_meta_tags_and_front_matter_say_the_version() -> None:
    """Tags of documentation first, the plain one last; the version of a generator is none of the documentation. Front
    matter counts as it is written: 1.10 is not 1.1.
    """
    for head, version in TAGS.items():
        page = f"<html><head>{head}</head><main><h1>A</h1><p>Text.</main>"
        assert convert(SourceText(URL, page)).version == version, head
    for front, version in FRONT.items():
        page = f"---\n{front}\n---\n# A\n\nText.\n"
        assert convert(SourceText(f"{URL}.md", page, "text/markdown")).version == version, front


async def found(index: Index, version: str) -> set[str]:
    live = await index.store.live()
    query = Query((LexicalText("en", "paragraph storage"),), filters=Filters(versions=(version,)))
    return {re.sub(r"^http://[^/]+", "", candidate.url) for candidate in (await live.search(query)).lexical}


async def test_pages_are_found_by_the_version_that_they_say(site: LocalSite, index: Index) -> None:
    """Also where another version has the same text; a version in the address is surer."""
    site.put("/a", html("v2.0,latest"))
    site.put("/old/a", html("1.0"))
    site.put("/v1.5/b", html("1.0", f"{LONG} More."))
    report = await index.run(site.sitemap("/a", "/old/a", "/v1.5/b"))
    assert set(outcomes(report).values()) == {"new"}
    pages = await index.pages()
    assert {path: page.versions for path, page in pages.items()} == {
        "/a": ("2.0", "latest"),
        "/old/a": ("1.0",),
        "/v1.5/b": (),
    }
    live = await index.store.live()
    assert {chunk.versions for chunk in await live.fetch(pages["/a"].derived.chunk_ids)} == {("2.0", "latest")}
    versions = {"1.0": {"/old/a"}, "1.5": {"/v1.5/b"}, "2.0": {"/a"}, "latest": {"/a"}, "3.0": set()}
    assert {version: await found(index, version) for version in versions} == versions


async def test_a_page_that_says_another_version_is_not_embedded_again(site: LocalSite, index: Index) -> None:
    """Its text is the same; its chunks are found by the new version from then on."""
    site.put("/a", html("1.0"))
    sitemap = site.sitemap("/a")
    await index.run(sitemap)
    assert await found(index, "1.0") == {"/a"}
    site.put("/a", html("2.0"))
    report = await index.run(sitemap)
    assert (outcomes(report), report.embedded_texts) == ({"/a": "unchanged"}, 0)
    assert (await found(index, "1.0"), await found(index, "2.0")) == (set(), {"/a"})
