"""Whole runs over a real site into a real store: incremental, atomic, and told page by page."""

import asyncio

import pytest

from app.core.errors import NoIndex, NotPublished
from ingestion.report import EXIT_OK, EXIT_WITH_FAILURES
from tests.ingestion.index import LONG, Index, outcomes, reasons
from tests.ingestion.local_site import LocalSite


@pytest.fixture
def three(site: LocalSite) -> str:
    """A sitemap of three pages."""
    for name in "abc":
        site.page(f"/{name}", f"Page {name}", f"About {name}.", LONG)
    return site.sitemap("/a", "/b", "/c")


async def test_a_first_run_indexes_every_page_and_a_second_one_downloads_and_embeds_nothing(
    site: LocalSite, three: str, index: Index
) -> None:
    """Pages, chunks and metadata are in the published generation, which stays the same when every page answers 304."""
    report = await index.run(three)
    assert outcomes(report) == {"/a": "new", "/b": "new", "/c": "new"}
    assert report.exit_code == EXIT_OK
    assert report.published is not None
    assert report.published.pages == 3
    assert report.embedded_texts == len(index.embedder.texts)
    assert sorted(index.embedder.texts) == await index.searched()
    page = (await index.pages())["/a"]
    assert (page.title, page.language, page.file) == ("Page a", "en", "a")
    assert (page.fetch.source, page.fetch.fetched_url) == (three, page.url)
    assert "Menu" not in await index.text(page.url)
    calls = len(index.embedder.calls)
    second = await index.run(three)
    assert set(outcomes(second).values()) == {"unchanged"}
    assert [site.statuses(f"/{name}") for name in "abc"] == [[200, 304]] * 3
    assert (len(index.embedder.calls), second.published) == (calls, report.published)


async def test_without_validators_the_text_decides(site: LocalSite, index: Index) -> None:
    """A page whose server knows no ETag is downloaded, found equal, and not embedded; its date stays too."""
    site.put("/a", f"<main><h1>A</h1><p>{LONG}", etag=False, headers={"Last-Modified": "Sat, 01 Nov 2025 10:00:00 GMT"})
    sitemap = site.sitemap("/a")
    await index.run(sitemap)
    calls = len(index.embedder.calls)
    site.put("/a", f"<main><h1>A</h1><p>{LONG}<nav>x</nav>", headers={"Last-Modified": "Sun, 02 Nov 2025 10:00:00 GMT"})
    report = await index.run(sitemap)
    assert outcomes(report) == {"/a": "unchanged"}
    assert len(index.embedder.calls) == calls
    page = (await index.pages())["/a"]
    assert page.modified.startswith("2025-11-01")
    assert page.fetch.last_modified.startswith("Sun")


async def test_a_changed_page_embeds_only_its_changed_chunks(site: LocalSite, three: str, index: Index) -> None:
    """A paragraph more at the end costs its chunk with its sentences, not the site."""
    await index.run(three)
    before = len(index.embedder.texts)
    chunks = {id_ for page in (await index.pages()).values() for id_ in page.derived.chunk_ids}
    site.page("/b", "Page b", "About b.", LONG, "A new paragraph about quotas.")
    report = await index.run(three)
    assert outcomes(report) == {"/a": "unchanged", "/b": "changed", "/c": "unchanged"}
    now = {id_ for page in (await index.pages()).values() for id_ in page.derived.chunk_ids}
    assert 1 <= len(now - chunks) <= 2
    assert sorted(index.embedder.texts[before:]) == await index.searched(chunks)
    assert report.embedded_texts == len(index.embedder.texts) - before
    assert "quotas" in await index.text(f"{site.url}/b")


async def test_pages_that_left_the_sitemap_or_the_site_are_removed(site: LocalSite, three: str, index: Index) -> None:
    """No longer listed, 404 and 410 all mean gone; a listed page that never was is skipped."""
    await index.run(three)
    site.page("/d", "Page d", "d")
    site.put("/b", "", status=410)
    report = await index.run(site.sitemap("/a", "/b", "/d", "/never"), max_lost=100)
    assert outcomes(report) == {"/a": "unchanged", "/b": "removed", "/c": "removed", "/d": "new", "/never": "skipped"}
    assert reasons(report) == {"/b": "answered 410", "/c": "no longer listed", "/never": "answered 404"}
    assert set(await index.pages()) == {"/a", "/d"}


async def test_a_page_that_fails_keeps_its_old_chunks(site: LocalSite, three: str, index: Index) -> None:
    """It is reported, marked as stale, still found, and well again when the site is."""
    await index.run(three)
    site.put("/b", "", status=500)
    report = await index.run(three)
    assert outcomes(report)["/b"] == "failed"
    assert reasons(report) == {"/b": "answered 500"}
    assert report.exit_code == EXIT_WITH_FAILURES
    assert "older state kept" in report.text
    page = (await index.pages())["/b"]
    assert page.fetch.stale_since
    assert page.fetch.status == 500
    assert "About b." in await index.text(page.url)
    site.page("/b", "Page b", "About b.", LONG)
    assert (await index.run(three)).exit_code == EXIT_OK
    assert (await index.pages())["/b"].fetch.stale_since == ""


async def test_a_page_that_may_not_be_read_has_its_reason(site: LocalSite, index: Index) -> None:
    """Robots rules and other hosts are told apart; `test_hostile_pages` has what can't be read."""
    site.put("/robots.txt", "User-agent: *\nDisallow: /private\n", "text/plain")
    site.page("/a", "A", "Text.")
    site.put("/private", "<p>x")
    site.put("/sitemap.txt", "/a\n/private\nhttps://other.example/x\n", "text/plain")
    report = await index.run(f"{site.url}/sitemap.txt")
    assert outcomes(report) == {"/a": "new", "/private": "skipped", "https://other.example/x": "skipped"}
    assert reasons(report)["/private"] == "robots.txt forbids it"
    assert "given sites" in reasons(report)["https://other.example/x"]


async def test_markdown_is_linked_without_its_suffix(site: LocalSite, index: Index) -> None:
    """A listed .mdx is read, and readers are sent to the page; of two listed forms the HTML is read."""
    site.put("/docs/a.mdx", "---\ntitle: Titulek\n---\n\n## Část [#cast]\n\nText.\n", "text/markdown")
    site.put("/docs/b.md", "# Raw\n", "text/markdown")
    site.page("/docs/b", "HTML", "Text of HTML.")
    site.put("/sitemap.txt", "/docs/a.mdx\n/docs/b.md\n/docs/b\n", "text/plain")
    report = await index.run(f"{site.url}/sitemap.txt")
    assert reasons(report) == {"/docs/b.md": f"is the same page as {site.url}/docs/b"}
    page = (await index.pages())["/docs/a"]
    assert (page.title, page.file, page.fetch.fetched_url) == ("Titulek", "a.mdx", f"{site.url}/docs/a.mdx")
    live = await index.store.live()
    (chunk,) = await live.fetch(page.derived.chunk_ids)
    assert [(s.path, s.anchor) for s in chunk.sections] == [(("Titulek",), ""), (("Titulek", "Část"), "cast")]
    assert site.statuses("/docs/a") == site.statuses("/docs/b.md") == []


async def test_moved_pages_do_not_double(site: LocalSite, three: str, index: Index) -> None:
    """A redirect to a listed page is skipped, one to another address is the page from then on."""
    await index.run(three)
    site.put("/a", "", status=301, headers={"Location": "/b"})
    site.put("/c", "", status=301, headers={"Location": "/new"})
    site.page("/new", "Page c", "About c.", LONG)
    report = await index.run(three)
    assert reasons(report) == {
        "/a": f"redirects to {site.url}/b, which is listed too",
        "/c": f"moved to {site.url}/new",
    }
    assert outcomes(report)["/a"] == "removed"
    assert set(await index.pages()) == {"/b", "/new"}
    moved = next(page for page in report.pages if page.url.endswith("/new"))
    assert moved.redirects == (f"{site.url}/c",)
    again = await index.run(three)
    assert outcomes(again) == {"/a": "skipped", "/b": "unchanged", "/new": "unchanged"}
    assert site.statuses("/new") == [304, 200, 304]  # the first is an ETag of the other address


async def test_other_sitemaps_and_collections_are_left_alone(site: LocalSite, index: Index) -> None:
    """Removing looks only at what a sitemap itself brought, or at all of the collection where only the given sites remain."""
    for name in ("a", "b", "c", "en/x"):
        site.page(f"/{name}", name, "Text.")
    await index.run(site.sitemap("/a", "/b"))
    await index.run(site.sitemap("/en/x", at="/en/sitemap.xml"))
    await index.run(site.sitemap("/c", at="/three.xml"), collection="other")
    await index.run(one := site.sitemap("/a"))
    assert set(await index.pages()) == {"/a", "/c", "/en/x"}
    report = await index.run(one, only=True)
    assert reasons(report) == {"/en/x": "of a site that wasn't given"}
    assert set(await index.pages()) == {"/a", "/c"}


async def test_a_page_of_another_collection_is_not_taken_over(site: LocalSite, index: Index) -> None:
    """An address is in one collection; the other one's run says so and keeps it."""
    site.page("/a", "A", "Text.")
    site.page("/b", "B", "Text.")
    await index.run(site.sitemap("/a"))
    report = await index.run(site.sitemap("/a", "/b", at="/two.xml"), collection="other")
    assert "in the collection docs" in reasons(report)["/a"]
    assert {path: page.collection for path, page in (await index.pages()).items()} == {"/a": "docs", "/b": "other"}


async def test_a_sitemap_with_a_dead_part_removes_nothing(site: LocalSite, three: str, index: Index) -> None:
    """What couldn't be read can't say what is gone."""
    parts = ["/1.txt", "/2.txt"]
    site.put(
        "/sitemap.xml",
        "<sitemapindex>" + "".join(f"<sitemap><loc>{{site}}{p}</loc></sitemap>" for p in parts) + "</sitemapindex>",
    )
    site.put("/1.txt", "/a\n/b\n", "text/plain")
    site.put("/2.txt", "/c\n", "text/plain")
    await index.run(three)
    site.put("/2.txt", "", status=500)
    report = await index.run(three)
    assert set(await index.pages()) == {"/a", "/b", "/c"}
    assert any("can't be read" in reason for reason in reasons(report).values())


async def test_nothing_readable_in_an_empty_index_is_an_error(site: LocalSite, index: Index) -> None:
    """There is no empty generation; the message has the reason."""
    with pytest.raises(NotPublished, match="answered 404"):
        await index.run(site.sitemap("/nowhere"))
    with pytest.raises(NoIndex):
        await index.store.live()


async def test_a_run_stopped_half_way_changes_nothing(site: LocalSite, three: str, index: Index) -> None:
    """Cancelled between pages, the old generation serves, and the next run does the whole."""
    before = (await index.run(three)).published
    site.page("/a", "Page a", "Changed.")
    site.put("/b", "<p>slow", delay=0.5)
    run = asyncio.create_task(index.run(three))
    while len(site.statuses("/a")) < 2:
        await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (await index.store.live()).info == before
    site.page("/b", "Page b", "About b.", LONG)
    report = await index.run(three)
    assert outcomes(report) == {"/a": "changed", "/b": "unchanged", "/c": "unchanged"}


async def test_another_recipe_rebuilds_all_without_losing_what_is_not_read(
    site: LocalSite, three: str, index: Index
) -> None:
    """Another chunk size puts every page anew: failing ones and those of other sitemaps from their stored Markdown."""
    site.page("/x", "Page x", "About x.", LONG)
    await index.run(three)
    await index.run(site.sitemap("/x", at="/x.xml"))
    site.put("/b", "", status=500)
    report = await index.run(three, chunk_size=300)
    assert outcomes(report) == {"/a": "unchanged", "/b": "failed", "/c": "unchanged"}
    assert site.statuses("/a") == [200, 200]
    pages = await index.pages()
    assert set(pages) == {"/a", "/b", "/c", "/x"}
    live = await index.store.live()
    for page in pages.values():
        chunks = await live.fetch(page.derived.chunk_ids)
        assert len(chunks) > 2
        assert all(len(chunk.text) <= 300 for chunk in chunks)


async def test_many_pages_come_in_full_batches(site: LocalSite, index: Index) -> None:
    """Small pages share embedding calls instead of costing one each."""
    paths = [f"/{n}" for n in range(40)]
    for path in paths:
        site.page(path, f"Page {path}", "Text.")
    report = await index.run(site.sitemap(*paths))
    assert report.counts["new"] == 40
    assert report.embedding_calls == 10
    assert all(len(call) == 4 for call in index.embedder.calls)
