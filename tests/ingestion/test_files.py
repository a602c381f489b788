"""PDF, DOCX and ODT files are pages like others, wherever they come from: a sitemap, links, or a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.types import Chunk
from ingestion.sources import Source
from plugins.formats import PDF
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
