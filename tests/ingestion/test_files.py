"""PDF and DOCX files are pages like others, wherever they come from: a sitemap, links, or a directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.core.errors import NotPublished
from app.core.types import Chunk
from ingestion.crawl.exchange import FILE_FACTOR
from ingestion.sources import Source
from plugins.formats import DOCX, PDF
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite

FILES = Path(__file__).parent / "files"
RESTORE = "Obnovu provede příkaz `demon --restore`. Čas obnovy závisí na velikosti zálohy."


async def chunk_with(index: Index, words: str) -> Chunk:
    live = await index.store.live()
    ids = [identifier for page in await live.pages() for identifier in page.derived.chunk_ids]
    return next(chunk for chunk in await live.fetch(ids) if words in chunk.text)


def put(site: LocalSite, path: str, name: str, media_type: str) -> None:
    site.put(path, (FILES / name).read_bytes(), media_type)


@pytest.mark.plugins
async def test_a_sitemap_lists_files_and_links_lead_to_the_page_where_the_section_begins(
    site: LocalSite, index: Index
) -> None:
    """Quotes are word for word, unchanged files answer 304, and a server may call a file a stream of bytes."""
    put(site, "/manual.pdf", "manual.pdf", PDF)
    put(site, "/handbook.docx", "writer.docx", "application/octet-stream")
    put(site, "/scanned.pdf", "scanned.pdf", PDF)
    source = Source(url=site.sitemap("/manual.pdf", "/handbook.docx", "/scanned.pdf"))
    report = await index.run(source)
    found = await chunk_with(index, RESTORE)
    section = next(one for one in found.sections if one.path[-1] == "Obnova ze zálohy")
    assert found.link_to(section) == f"{site.url}/manual.pdf#page=3"
    assert section.path == ("Příručka správce serveru", "Zálohování", "Obnova ze zálohy")
    assert (found.language, found.title) == ("cs", "Příručka správce serveru")
    assert (await chunk_with(index, "přeskočí kontrolu")).link == f"{site.url}/handbook.docx"
    reasons = {page.url: page.reason for page in report.pages if page.outcome == "skipped"}
    assert reasons == {f"{site.url}/scanned.pdf": "holds no text: it is scanned pictures"}
    again = await index.run(source)
    assert (again.counts["changed"], again.counts["new"]) == (0, 0)
    assert site.statuses("/manual.pdf")[-1] == site.statuses("/handbook.docx")[-1] == 304


@pytest.mark.plugins
async def test_links_to_files_are_followed(site: LocalSite, index: Index) -> None:
    put(site, "/docs/manual.pdf", "manual.pdf", PDF)
    put(site, "/docs/handbook.docx", "writer.docx", DOCX)
    put(site, "/elsewhere.docx", "writer.docx", DOCX)
    links = "".join(f'<a href="{link}">x</a>' for link in ("manual.pdf", "handbook.docx", "/elsewhere.docx", "a.zip"))
    site.put("/docs/", f"<html lang=en><main><h1>Files</h1><p>Read these two files first.</p>{links}</main></html>")
    await index.run(Source(url=f"{site.url}/docs/", follow=True))
    assert set(await index.pages()) == {f"/docs/{name}" for name in ("", "manual.pdf", "handbook.docx")}


@pytest.mark.plugins
async def test_files_of_a_directory_are_published_under_their_own_names(index: Index, tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "index.md").write_text("# Start\n\nThe first page has some words.")
    for name in ("manual.pdf", "pandoc.docx", "writer.docx"):
        shutil.copy(FILES / name, root)
    url = "https://docs.example.org/"
    await index.run(Source(url=url, directory=str(root), ending="/"))
    assert (await chunk_with(index, RESTORE)).url == f"{url}manual.pdf"
    assert {url, f"{url}manual.pdf"} < set(await index.pages())  # the two others have the same text


@pytest.mark.plugins
async def test_a_file_may_be_larger_than_a_page_and_beyond_that_the_report_names_the_setting(
    site: LocalSite, index: Index, tmp_path: Path
) -> None:
    size = (FILES / "manual.pdf").stat().st_size
    put(site, "/manual.pdf", "manual.pdf", PDF)
    source = Source(url=site.sitemap("/manual.pdf"))
    await index.run(source, crawl_max_bytes=size // FILE_FACTOR + 1)
    assert await chunk_with(index, RESTORE)
    with pytest.raises(
        NotPublished, match=r"is larger than [\d,]+ bytes: .*5 times as large as DOCS_TUNING__CRAWL_MAX_BYTES"
    ):
        await Index(tmp_path / "other").run(source, crawl_max_bytes=size // FILE_FACTOR - 1)
