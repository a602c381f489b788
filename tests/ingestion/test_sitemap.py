"""The sitemaps of a site are found by its address."""

import pytest

from app.core.errors import SettingsError, SitemapError
from ingestion.crawl.exchange import PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.entry import Listing
from ingestion.sources import Source, as_sources
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


async def test_a_sitemap_is_found_by_its_usual_names_and_where_the_start_page_names_it(
    site: LocalSite, fetcher: Fetcher
) -> None:
    """Astro and WordPress have other names than sitemap.xml; a start page's link counts unless it leads to another host."""
    for name in ("/sitemap-index.xml", "/sitemap_index.xml", "/docs/sitemap-index.xml"):
        site.sitemap("/docs/a", at="/part.xml")
        part = f"<sitemapindex><sitemap><loc>{site.url}/part.xml</loc></sitemap></sitemapindex>"
        site.put(name, part, "application/xml")
        assert [entry.url for entry in (await listed(f"{site.url}/docs/", fetcher)).entries] == [f"{site.url}/docs/a"]
        del site.answers[name]
    start = (
        "<html><head><link rel=sitemap href={href}></head><body><a href=/docs/linked>x</a><p>Words.</p></body></html>"
    )
    site.put("/docs/", start.replace("{href}", "/part.xml"))
    assert [entry.url for entry in (await listed(f"{site.url}/docs/", fetcher)).entries] == [f"{site.url}/docs/a"]
    kept = fetcher.downloads.take(PageRequest(f"{site.url}/docs/"))
    assert kept
    assert kept.body
    assert site.statuses("/docs/") == [200], "the start page is kept for its conversion"
    for href, follow in (("/part.xml", True), ("https://elsewhere.example/map.xml", False)):
        site.put("/docs/", start.replace("{href}", href))
        read = await list_sources([Source(url=f"{site.url}/docs/", follow=follow)], fetcher)
        fetcher.downloads.take(PageRequest(f"{site.url}/docs/"))  # as the conversion does
        assert [entry.url for entry in read.entries] == [f"{site.url}/docs/", f"{site.url}/docs/linked"]


async def test_a_site_without_sitemap_and_a_wrong_address_are_errors(site: LocalSite, fetcher: Fetcher) -> None:
    """The message says what to give instead."""
    with pytest.raises(SitemapError, match="give the sitemap's address"):
        await listed(site.url, fetcher)
    with pytest.raises(SettingsError, match="isn't a web address"):
        await listed("docs.example.org", fetcher)


async def test_the_links_of_an_llms_txt_are_pages(site: LocalSite, fetcher: Fetcher) -> None:
    """Markdown links, each once; those to other hosts are skipped with the reason, and text without links is an error."""
    body = """# Project\n\n> What it is: see (nothing).\n\n## Docs\n\n- [Install](/install.md): how to install
- [Use](use.html#first): how to [use](use.html) it\n\n## Optional\n\n- [Elsewhere](https://other.example/x)\n"""
    site.put("/docs/llms.txt", body, "text/plain")
    listed = await list_sources([Source(url=f"{site.url}/docs/llms.txt")], fetcher)
    assert [entry.url for entry in listed.entries] == [f"{site.url}/install.md", f"{site.url}/docs/use.html"]
    assert [skipped.url for skipped in listed.skipped] == ["https://other.example/x"]
    site.put("/docs/llms.txt", "# Project without links\n", "text/plain")
    with pytest.raises(SitemapError, match="lists no page"):
        await list_sources([Source(url=f"{site.url}/docs/llms.txt")], fetcher)
