"""The sitemaps of a site are found by its address."""

import pytest

from app.core.errors import SettingsError, SitemapError
from ingestion.crawl.fetch import Fetcher
from ingestion.entry import Listing
from ingestion.sources import as_sources
from tests.ingestion.local_site import LocalSite, list_sources


async def listed(url: str, fetcher: Fetcher) -> Listing:
    return await list_sources(as_sources([url]), fetcher)


async def test_a_site_is_found_by_its_robots_txt(site: LocalSite, fetcher: Fetcher) -> None:
    """Of a bare site the Sitemap lines of robots.txt are read, relative ones too."""
    site.put(
        "/robots.txt", "User-agent: *\nSitemap: {site}/en.txt\nSitemap: /cs.txt\nSitemap: http://[x\n", "text/plain"
    )
    site.put("/en.txt", "/en/a\n", "text/plain")
    site.put("/cs.txt", "/cs/a\n", "text/plain")
    read = await listed(site.url, fetcher)
    assert [entry.url for entry in read.entries] == [f"{site.url}/en/a", f"{site.url}/cs/a"]


async def test_a_folder_of_a_site_takes_only_its_pages(site: LocalSite, fetcher: Fetcher) -> None:
    """Without robots.txt /sitemap.xml is tried; pages outside of the folder are skipped with the reason."""
    site.sitemap("/docs/a", "/blog/b")
    read = await listed(f"{site.url}/docs/", fetcher)
    assert [entry.url for entry in read.entries] == [f"{site.url}/docs/a"]
    assert read.skipped[0].reason == f"not under {site.url}/docs/"


async def test_a_site_without_sitemap_and_a_wrong_address_are_errors(site: LocalSite, fetcher: Fetcher) -> None:
    """The message says what to give instead."""
    with pytest.raises(SitemapError, match="give the sitemap's address"):
        await listed(site.url, fetcher)
    with pytest.raises(SettingsError, match="isn't a web address"):
        await listed("docs.example.org", fetcher)
