"""A site as a LlamaIndex reader: clean Markdown with the facts of the pages."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.ingestion import IngestionPipeline

from app.core.errors import SitemapError
from app.core.settings import Settings
from ingestion.site_reader import DocsSiteReader
from ingestion.split.parsers import SectionParser
from tests.ingestion.local_site import LocalSite

NAVIGATION = "<nav><a href='/a'>Alpha</a> <a href='/b'>Beta</a></nav>"


def reader(site: LocalSite, *paths: str) -> DocsSiteReader:
    return DocsSiteReader(site.sitemap(*paths), settings=Settings.load(None, languages=("en",)))


async def test_documents_are_clean_markdown_with_facts(site: LocalSite) -> None:
    site.put(
        "/a",
        f"<html lang=en><body>{NAVIGATION}<main><h1>Alpha</h1><h2 id=create>Create</h2><p>Create a volume with it.</main></body></html>",
    )
    site.put("/b", "# Beta\n\nThe quota of the beta is small.", "text/markdown")
    documents = await reader(site, "/a", "/b").aload_data()
    assert [document.metadata["url"] for document in documents] == [f"{site.url}/a", f"{site.url}/b"]
    assert [document.id_ for document in documents] == [f"{site.url}/a", f"{site.url}/b"]
    assert documents[0].text.strip() == "# Alpha\n\n## Create {#create}\n\nCreate a volume with it."
    assert documents[0].metadata["title"] == "Alpha"
    assert {document.metadata["language"] for document in documents} == {"en"}


async def test_a_page_that_is_away_is_left_out_and_told(site: LocalSite, caplog: pytest.LogCaptureFixture) -> None:
    site.page("/a", "Alpha", "Words of alpha.")
    documents = await reader(site, "/a", "/gone").aload_data()
    assert len(documents) == 1
    assert "/gone" in caplog.text


async def test_a_site_without_pages_is_an_error(site: LocalSite) -> None:
    with pytest.raises(SitemapError):
        await DocsSiteReader(f"{site.url}/nothing.xml", settings=Settings.load(None)).aload_data()


async def test_a_pipeline_of_llamaindex_takes_it_lazily_with_our_parser(site: LocalSite) -> None:
    """As any reader and any transformation; the nodes know their sections."""
    site.put("/a", "# Alpha {#alpha}\n\nOne.\n\n## Create {#create}\n\n" + "Create a volume. " * 60, "text/markdown")
    read = reader(site, "/a")
    documents = await asyncio.to_thread(lambda: list(read.lazy_load_data()))
    nodes = await IngestionPipeline(transformations=[SectionParser(size=400)]).arun(documents=documents)
    assert len(nodes) > 2
    assert nodes[-1].metadata["headings"] == "Alpha > Create"
    assert nodes[-1].parent_node.node_id == f"{site.url}/a#create"
