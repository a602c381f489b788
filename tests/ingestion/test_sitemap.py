"""The sitemaps of a site are found by its address."""

import gzip

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


PLAIN = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>{site}/a</loc></url></urlset>"


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(PLAIN.replace("<", "<sm:").replace("<sm:/", "</sm:").replace(" xmlns", " x"), id="prefix"),
        pytest.param("\ufeff\ufeff" + PLAIN, id="two byte order marks"),
        pytest.param(
            f"<br />\n<b>Notice</b>: Undefined index in <b>/x.php</b><br />\n<?xml version='1.0'?>{PLAIN}", id="PHP"
        ),
        pytest.param(f"Warning: mysql_connect() in x.php\n{PLAIN}", id="warning"),
        pytest.param(
            PLAIN.replace("<url>", "<url><image:image><image:loc>{site}/i.png</image:loc></image:image>"), id="image"
        ),
    ],
)
async def test_sitemaps_are_read_that_programs_write_wrongly(site: LocalSite, fetcher: Fetcher, written: str) -> None:
    site.put("/sitemap.xml", written, "application/xml")
    assert [entry.url for entry in (await listed(f"{site.url}/sitemap.xml", fetcher)).entries] == [f"{site.url}/a"]


async def test_an_index_goes_on_after_a_part_with_undeclared_prefixes(site: LocalSite, fetcher: Fetcher) -> None:
    index = "<x:sitemapindex><x:sitemap><x:loc>{site}/1.xml</x:loc></x:sitemap><x:sitemap><x:loc>/2.xml</x:loc></x:sitemap></x:sitemapindex>"
    site.put("/sitemap.xml", index, "application/xml")
    site.put("/1.xml", "<y:urlset><y:url><y:loc>/b</y:loc></y:url></y:urlset>", "application/xml")
    site.put("/2.xml", PLAIN, "application/xml")
    read = await listed(f"{site.url}/sitemap.xml", fetcher)
    assert [entry.url for entry in read.entries] == [f"{site.url}/b", f"{site.url}/a"]


async def test_languages_are_paired_without_a_declared_prefix(site: LocalSite, fetcher: Fetcher) -> None:
    other = '<xhtml:link rel="alternate" hreflang="cs" href="{site}/cs/a"/></url>'
    site.put("/sitemap.xml", PLAIN.replace("</url>", other), "application/xml")
    read = await listed(f"{site.url}/sitemap.xml", fetcher)
    assert read.entries[0].alternates == {"cs": f"{site.url}/cs/a"}


async def test_all_members_of_a_packed_sitemap_are_read(site: LocalSite, fetcher: Fetcher) -> None:
    """Zeros after them are padding; where the end is missing, a page that isn't listed proves nothing."""
    whole = PLAIN.replace("{site}", site.url).encode()
    members = gzip.compress(whole[:90]) + gzip.compress(whole[90:])
    for body, complete in ((members, True), (members + bytes(64), True), (members[:-10], False)):
        site.put("/sitemap.xml.gz", body, "application/gzip")
        read = await listed(f"{site.url}/sitemap.xml.gz", fetcher)
        assert ([entry.url for entry in read.entries], bool(read.complete)) == ([f"{site.url}/a"], complete)


async def test_a_page_that_answers_every_address_is_no_sitemap(site: LocalSite, fetcher: Fetcher) -> None:
    """The next usual name counts, then the sitemap that the page names."""
    page = (
        '<!doctype html><HTML><head><link rel="sitemap" href="/named.xml"></head><body><div id=app></div></body></html>'
    )
    for path in ("/", "/robots.txt", "/sitemap.xml", "/sitemap-index.xml", "/sitemap_index.xml"):
        site.put(path, page)
    site.put("/named.xml", PLAIN, "application/xml")
    assert [entry.url for entry in (await listed(f"{site.url}/", fetcher)).entries] == [f"{site.url}/a"]
    site.put("/sitemap_index.xml", PLAIN.replace("/a<", "/b<"), "application/xml")
    assert [entry.url for entry in (await listed(f"{site.url}/", fetcher)).entries] == [f"{site.url}/b"]
