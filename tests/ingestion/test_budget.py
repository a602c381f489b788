"""One budget of CPU time and chunks for a page, and of addresses for a source: what is beyond is named, all else is published."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ingestion.errors import ConversionError
from ingestion.report import EXIT_OK, EXIT_WITH_FAILURES
from ingestion.sources import Source
from ingestion.split.pieces import cut_lines, cut_prose
from ingestion.workers import Workers
from tests.ingestion.hostile import HTML
from tests.ingestion.index import LONG, Index, path_of, reasons
from tests.ingestion.local_site import LocalSite


def compute(seconds: float) -> str:
    """Computes for so long."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return "done"


async def test_all_calls_for_a_page_share_its_time_and_no_other_page_pays() -> None:
    """Also calls in another context for the same address; one that isn't for a page has its own time."""
    async with Workers(page_seconds=2.0) as workers:
        with workers.page("/a"):
            assert await workers.run(compute, 1.2) == "done"
        with workers.page("/b"):
            assert await workers.run(compute, 0.1) == "done"
            with (
                workers.page("/a"),
                pytest.raises(ConversionError, match=r"longer than 2 s .*DOCS_TUNING__PAGE_SECONDS"),
            ):
                await workers.run(compute, 1.2)
            assert await workers.run(compute, 0.1) == "done"
        with workers.page("/a"), pytest.raises(ConversionError, match="takes longer than 2 s"):
            await workers.run(compute, 0.0)
        with workers.page("/file"):
            workers.allow(2)
            assert await workers.run(compute, 2.5) == "done"
        assert await workers.run(compute, 2.5) == "done"


async def test_pages_beyond_the_budget_are_named_and_the_others_published(site: LocalSite, index: Index) -> None:
    """By time, by chunks, and by a text that is much longer than the page; each with what to do."""
    site.page("/good", "Good", LONG)
    site.put("/links", HTML["links in a list"](4_000_000))
    site.put("/cells", HTML["wide cells"](4_000))
    site.page("/chunks", "Chunks", *(f"{n} {LONG}" for n in range(60)))
    sitemap = site.sitemap("/good", "/links", "/cells", "/chunks")
    report = await index.run(sitemap, page_seconds=8, page_chunks=40, crawl_max_bytes=150_000)
    assert set(await index.pages()) == {"/good"}
    told = reasons(report)
    assert "is larger than 150,000 bytes" in told.pop("/links")
    assert "becomes a text of" in told["/cells"]
    assert "DOCS_TUNING__CRAWL_MAX_BYTES" in told["/cells"]
    assert "chunks, and a page may have 40: divide the page" in told["/chunks"]
    assert "DOCS_TUNING__PAGE_CHUNKS" in report.text
    report = await index.run(sitemap, page_seconds=4, page_chunks=40)
    assert "takes longer than 4 s to be read: divide the page" in reasons(report)["/links"]
    assert set(await index.pages()) == {"/good", "/cells"}
    site.page("/good", "Good", f"Newer: {LONG}")
    assert (await index.run(sitemap, page_seconds=4, page_chunks=1000)).exit_code == EXIT_OK
    assert "/chunks" in await index.pages()


@pytest.mark.parametrize("kind", ["sitemap.xml", "llms.txt", "index", "links", "directory"])
async def test_addresses_beyond_the_budget_are_named_and_the_first_are_read(
    site: LocalSite, index: Index, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the source lists them; pages of the index that aren't read any longer stay."""
    paths = [f"/guide/p{n}" for n in range(6)]
    for number, path in enumerate(paths):
        site.page(path, path, f"Words of page {number}.")
    source = Source(url=site.sitemap(*paths))
    if kind == "llms.txt":
        site.put("/llms.txt", "# Docs\n\n" + "".join(f"- [x]({path})\n" for path in paths), "text/plain")
        source = Source(url=f"{site.url}/llms.txt")
    elif kind == "index":
        children = [site.sitemap(path, at=f"/{n}.xml") for n, path in enumerate(paths)]
        inner = "".join(f"<sitemap><loc>{child}</loc></sitemap>" for child in children)
        site.put("/index.xml", f"<sitemapindex>{inner}</sitemapindex>", "application/xml")
        source = Source(url=f"{site.url}/index.xml")
    elif kind == "links":
        site.put("/guide/", "<main><h1>All</h1>" + "".join(f"<a href={path}>x</a> " for path in paths) + "</main>")
        source = Source(url=f"{site.url}/guide/", follow=True)
    elif kind == "directory":
        for number in range(6):
            (tmp_path / f"p{number}.md").write_text(f"# P{number}\n\nWords of page {number}.\n")
        source = Source(url="https://docs.example.org/", directory=str(tmp_path))
    monkeypatch.setattr("ingestion.crawl.sitemap.MAX_ADDRESSES", 4)
    report = await index.run(source)
    assert report.exit_code == EXIT_WITH_FAILURES
    (told,) = report.failed_sources
    assert "addresses, of which the first 4 are read: choose others with `include` and `exclude`" in told
    assert len(await index.pages()) == 4
    monkeypatch.setattr("ingestion.crawl.sitemap.MAX_ADDRESSES", 100)
    await index.run(source)
    every = {path_of(page) for page in (await index.pages()).values()}
    assert len(every) == 6 + (kind == "links")
    monkeypatch.setattr("ingestion.crawl.sitemap.MAX_ADDRESSES", 4)
    await index.run(source)
    assert {path_of(page) for page in (await index.pages()).values()} == every


@pytest.mark.parametrize("text", ["x" * 90_000, "word " * 20_000, "Ěš" * 40_000 + " and " + "y" * 70_000])
def test_a_long_text_without_an_end_is_cut_and_nothing_is_lost(text: str) -> None:
    """A word, or a sentence without a full stop."""
    for parts in (cut_prose(text, 1000), cut_lines([text], 1000)):
        assert max(len(part) for part, _ in parts) <= 1000
        assert "".join("".join(part.split()) for part, _ in parts) == "".join(text.split())
