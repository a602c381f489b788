"""One text is indexed once, at the address that its site means, whatever the order in which pages arrive."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from ingestion.report import Report
from ingestion.sources import Source
from tests.ingestion.index import Index, outcomes, reasons
from tests.ingestion.local_site import LocalSite

LONG = " ".join(f"Sentence number {n} of this page says something about storage and volumes." for n in range(6))
DEUTSCH = (
    "Die Seite beschreibt, wie man einen Speicher anlegt, und was dabei zu beachten ist, wenn er wachsen soll. " * 5
)
CZECH = "Úložiště založíte příkazem a jeho velikost nastavíte podle toho, kolik dat budete potřebovat uložit. " * 5


def html(title: str, text: str, head: str = "") -> str:
    return f"<html lang=en><head><title>{title}</title>{head}</head><main><h1>{title}</h1><p>{text}</p></main></html>"


def canonical(path: str) -> str:
    return f'<link rel="canonical" href="{path}">'


async def paths(index: Index) -> dict[str, str]:
    """Of each page that has no chunks, the page that is searched instead."""
    return {
        path: page.derived.same_as.partition("//")[2].partition("/")[2] for path, page in (await index.pages()).items()
    }


def same(report: Report) -> set[str]:
    return {page.url.rpartition("/")[2] for page in report.pages if page.same_as}


def same_text(site: LocalSite, names: str = "abc", delays: Mapping[str, float] = MappingProxyType({})) -> str:
    """Pages with one text; gives their sitemap."""
    for name in names:
        site.put(f"/{name}", html("Title", LONG), delay=delays.get(name, 0))
    return site.sitemap(*(f"/{name}" for name in names))


@pytest.mark.parametrize("delays", [{"a": 0.2}, {"b": 0.25, "a": 0.5}])
async def test_the_page_listed_first_keeps_the_text(site: LocalSite, index: Index, delays: dict[str, float]) -> None:
    """In whatever order they arrive; the others are listed as its copies, and stay findable by their address."""
    same_text(site, delays=delays)
    report = await index.run(site.sitemap("/a", "/b", "/c"))
    assert outcomes(report) == {"/a": "new", "/b": "skipped", "/c": "skipped"}
    assert reasons(report) == dict.fromkeys(("/b", "/c"), f"has the same text as {site.url}/a")
    assert await paths(index) == {"/a": "", "/b": "a", "/c": "a"}
    assert await index.text(f"{site.url}/a")
    assert await index.text(f"{site.url}/b") == ""
    copy = await index.page(f"{site.url}/b")
    assert (copy.derived.same_as, copy.derived.chunk_ids) == (f"{site.url}/a", ())
    assert "storage and volumes" in copy.markdown


async def test_the_same_text_is_one_page_wherever_its_links_lead(site: LocalSite, index: Index) -> None:
    """A page whose links alone have changed is written again; other code isn't the same text."""
    for name in "abc":
        code = "<pre>[x](/c)</pre>" if name == "c" else "<pre>[x](/b)</pre>"
        site.put(
            f"/{name}", html("Title", f'{LONG} <a href="/{name}#more">More</a> <img src="/{name}.png" alt="x">{code}')
        )
    await index.run(site.sitemap("/a", "/b", "/c"))
    assert await paths(index) == {"/a": "", "/b": "a", "/c": ""}
    site.put("/a", html("Title", f'{LONG} <a href="/new">More</a> <img src="/a.png" alt="x"><pre>[x](/b)</pre>'))
    assert outcomes(await index.run(site.sitemap("/a", "/b", "/c")))["/a"] == "changed"
    assert "/new" in await index.text(f"{site.url}/a")
    assert await paths(index) == {"/a": "", "/b": "a", "/c": ""}


async def test_a_copy_costs_nothing_in_later_runs(site: LocalSite, index: Index) -> None:
    """It answers 304 like any page, and a page that comes to be listed before it doesn't take the text over."""
    same_text(site)
    await index.run(site.sitemap("/b", "/c"))
    report = await index.run(site.sitemap("/a", "/b", "/c"))
    assert outcomes(report) == {"/a": "skipped", "/b": "unchanged", "/c": "skipped"}
    assert site.statuses("/c") == [200, 304]
    assert report.embedded_texts == 0
    assert await paths(index) == {"/a": "b", "/b": "", "/c": "b"}


@pytest.mark.parametrize("change", ["text", "gone", "unlisted", "status"])
async def test_copies_are_read_again_when_their_page_changes(site: LocalSite, index: Index, change: str) -> None:
    """The text is never lost: the next of them holds it, whether the page has other text, is gone, or is listed no more."""
    await index.run(same_text(site))
    listed = ["/a", "/b", "/c"]
    if change == "text":
        site.put("/a", html("Title", f"Other words. {LONG}"))
    elif change == "gone":
        site.put("/a", "", status=410)
    elif change == "unlisted":
        listed.remove("/a")
    else:
        site.put("/a", "", status=301, headers={"Location": "/d"})
        site.put("/d", html("Title", f"Moved words. {LONG}"))
    report = await index.run(site.sitemap(*listed))
    assert (outcomes(report)["/b"], outcomes(report)["/c"]) == ("unchanged", "skipped")
    found = await paths(index)
    assert (found["/b"], found["/c"]) == ("", "b")
    assert "storage and volumes" in await index.text(f"{site.url}/b")
    assert [p.url for p in report.pages].count(f"{site.url}/b") == 1


async def test_a_failing_page_keeps_its_text_and_its_copies(site: LocalSite, index: Index) -> None:
    """Nothing is known to have changed."""
    sitemap = same_text(site, "ab")
    await index.run(sitemap)
    site.put("/a", "", status=500)
    await index.run(sitemap)
    assert await paths(index) == {"/a": "", "/b": "a"}


async def test_a_copy_that_gets_words_of_its_own_is_indexed(site: LocalSite, index: Index) -> None:
    """It has chunks from then on."""
    sitemap = same_text(site, "ab")
    await index.run(sitemap)
    site.put("/b", html("Title", f"Own words. {LONG}"))
    report = await index.run(sitemap)
    assert outcomes(report) == {"/a": "unchanged", "/b": "changed"}
    assert "Own words" in await index.text(f"{site.url}/b")


async def test_another_recipe_keeps_copies_as_they_are(site: LocalSite, index: Index) -> None:
    """A rebuild merges anew, and what it doesn't read stays a copy without chunks."""
    same_text(site)
    await index.run(site.sitemap("/a", "/b"))
    await index.run(site.sitemap("/c", at="/c.xml"))
    await index.run(site.sitemap("/a", "/b"), chunk_size=300)
    assert await paths(index) == {"/a": "", "/b": "a", "/c": "a"}
    assert await index.text(f"{site.url}/c") == ""


async def test_stubs_and_other_languages_and_collections_are_not_merged(site: LocalSite, index: Index) -> None:
    """Under 20 words equal text means nothing but at /stub/ and /stub/index.html; a Czech page is none of an English one's copies."""
    for name in ("stub", "stub/index.html"):
        site.put(f"/{name}", html("Title", "Nothing here yet."))
    site.put("/en/short", html("T", "`kubectl get pods` " * 12))
    site.put("/cs/short", html("T", "`kubectl get pods` " * 12))
    listed = "/stub", "/stub/index.html", "/en/short", "/cs/short"
    report = await index.run(site.sitemap(*listed))
    assert [path for path, outcome in outcomes(report).items() if outcome != "new"] == ["/stub/index.html"]
    site.put("/en/stub", html("Title", "Nothing here yet."))
    assert outcomes(await index.run(site.sitemap(*listed, "/en/stub")))["/en/stub"] == "new"
    same_text(site, "ab")
    await index.run(
        Source(url=site.sitemap("/a", at="/1.xml"), collection="one"),
        Source(url=site.sitemap("/b", at="/2.xml"), collection="two"),
    )
    pages = await index.pages()
    assert (pages["/a"].derived.same_as, pages["/b"].derived.same_as) == ("", "")
    assert (pages["/a"].collection, pages["/b"].collection) == ("one", "two")


@pytest.mark.parametrize("slow", ["old", "new"])
async def test_a_copy_that_names_another_listed_page_gives_way_to_it(site: LocalSite, index: Index, slow: str) -> None:
    """The site's own word counts more than the order."""
    for name in ("old", "new"):
        site.put(f"/{name}", html("Title", LONG, canonical("/new")), delay=0.2 if name == slow else 0)
    await index.run(site.sitemap("/old", "/new"))
    assert await paths(index) == {"/old": "new", "/new": ""}


async def test_a_page_is_known_under_its_canonical_address(site: LocalSite, index: Index) -> None:
    """Readers are sent there, later runs ask conditionally, and another host's address doesn't count."""
    site.put("/a?version=2", html("A", f"A {LONG}", canonical("/a")))
    site.put("/b", html("B", f"B {LONG}", canonical("https://elsewhere.example/b")))
    sitemap = site.sitemap("/a?version=2", "/b")
    report = await index.run(sitemap)
    assert outcomes(report) == {"/a": "new", "/b": "new"}
    assert (await index.pages())["/a"].fetch.fetched_url == f"{site.url}/a?version=2"
    again = await index.run(sitemap)
    assert outcomes(again) == {"/a": "unchanged", "/b": "unchanged"}
    assert site.statuses("/a?version=2") == [200, 304]
    site.put("/a?version=2", html("A", f"A {LONG}"))
    moved = await index.run(sitemap)
    assert outcomes(moved) == {"/a": "removed", "/a?version=2": "changed", "/b": "unchanged"}
    assert set(await index.pages()) == {"/a?version=2", "/b"}


@pytest.mark.parametrize("slow", ["a", "c"])
async def test_a_canonical_address_on_every_page_hides_none(site: LocalSite, index: Index, slow: str) -> None:
    """A theme that names the home page everywhere is a mistake that many sites have."""
    for name in "abc":
        text = html(f"Title {name}", f"{name} {LONG}", canonical("/home"))
        site.put(f"/{name}", text, delay=0.2 if name == slow else 0)
    sitemap = site.sitemap("/a", "/b", "/c")
    report = await index.run(sitemap)
    assert outcomes(report) == {"/a": "new", "/b": "new", "/c": "new"}
    assert set(await index.pages()) == {"/a", "/b", "/c"}
    assert set(outcomes(await index.run(sitemap)).values()) == {"unchanged"}


async def test_copies_that_name_the_same_unlisted_page_are_one(site: LocalSite, index: Index) -> None:
    """The text is at the address that they agree on, once."""
    for query in ("?v=1", "?v=2"):
        site.put(f"/a{query}", html("A", LONG, canonical("/a")))
    await index.run(site.sitemap("/a?v=1", "/a?v=2"))
    found = await paths(index)
    assert found.pop("/a") == ""
    assert list(found.values()) == ["a"]


@pytest.mark.parametrize("alternate", ["", "/en-us/guide"])
async def test_an_untranslated_page_with_a_note_above_is_the_page_in_the_language_of_its_text(
    site: LocalSite, index: Index, alternate: str
) -> None:
    """By address or hreflang, also if it is listed first; until it is translated, or the original says something else."""

    def german(*texts: str) -> str:
        link = f'<link rel="alternate" hreflang="en-US" href="{alternate}">' if alternate else ""
        text = "</p><p>".join(texts)
        return html("Guide", text, link).replace("lang=en", "lang=de")

    note = "Diese Seite ist noch nicht übersetzt."
    sentences = [f"Sentence number {n} of this page says what readers do with volumes." for n in range(5)]
    original, fallback = alternate or "/guide", "/de/guide"
    site.put(original, html("Guide", "</p><p>".join(sentences)))
    site.put(fallback, german(note, *sentences))
    site.put("/de/other", german(f"It has only the address in common with the other page. {LONG}"))
    site.put("/other", html("Other", LONG))
    listed = site.sitemap(fallback, original, "/de/other", "/other")
    report = await index.run(listed)
    assert reasons(report) == {fallback: f"has the same text as {site.url}{original}"}
    assert not [page for page in report.flagged if page.url.endswith("/guide")]
    assert await paths(index) == {fallback: original[1:], original: "", "/de/other": "", "/other": ""}
    site.answers[fallback].etag = False  # read in full, and still the same
    again = await index.run(listed)
    assert (again.changed, again.embedded_texts) == (False, 0)
    site.put(original, html("Guide", f"New words. {LONG}"))
    await index.run(listed)
    assert (await paths(index))[fallback] == ""
    site.put(original, html("Guide", "</p><p>".join(sentences)))
    await index.run(listed, force=True)
    assert (await paths(index))[fallback] == original[1:]
    site.put(fallback, german(DEUTSCH))
    await index.run(listed, languages=("en", "de"))
    assert (await paths(index))[fallback] == ""
