"""Sitemaps of every form are read, and what isn't one is an error."""

import contextlib
import gzip
import time

import pytest

from app.core.errors import SettingsError, SitemapError
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.sitemap_parse import NotASitemap, parse_sitemap
from ingestion.entry import Listing
from ingestion.sources import as_sources
from tests.ingestion.local_site import LocalSite, list_sources

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
URL = "https://docs.example.org/sitemap.xml"
A = "https://docs.example.org/a"


async def listed(url: str, fetcher: Fetcher) -> Listing:
    return await list_sources(as_sources([url]), fetcher)


def urls(body: str | bytes) -> list[str]:
    return [page.url for page in parse_sitemap(body.encode() if isinstance(body, str) else body, URL).pages]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"<urlset {NS}><url><loc>{A}</loc></url></urlset>", [A]),
        (f"<urlset><url><loc>{A}</loc></url></urlset>", [A]),
        (b"\xef\xbb\xbf" + f"<urlset {NS}><url><loc>{A}</loc></url></urlset>".encode(), [A]),
        (f"\n\n<?xml version='1.0'?><urlset {NS}><url><loc>\n {A} </loc></url></urlset>", [A]),
        (f"<urlset {NS}><url><loc><![CDATA[{A}]]></loc></url></urlset>", [A]),
        (f"<urlset {NS}><url><loc>{A}?x=1&y=2</loc></url></urlset>", [f"{A}?x=1&y=2"]),
        (f"<urlset {NS}><url><loc>{A}</loc></url><url><loc>{A}b</loc></url><url><lo", [A, f"{A}b"]),
        (f"<urlset {NS}><url><loc>/a#part</loc></url></urlset>", [A]),
        (f"<!-- x --><urlset {NS}><!-- y --><url><loc>{A}</loc></url></urlset>", [A]),
        (
            f"<?xml version='1.0' encoding='iso-8859-2'?><urlset {NS}><url><loc>{A}/ř</loc></url></urlset>".encode(
                "iso-8859-2"
            ),
            [f"{A}/ř"],
        ),
        (gzip.compress(f"<urlset {NS}><url><loc>{A}</loc></url></urlset>".encode()), [A]),
        (gzip.compress(gzip.compress(f"{A}\n".encode())), [A]),
        (f"{A}\n\n# comment\n/b\nc.mdx\r\n", [A, "https://docs.example.org/b", "https://docs.example.org/c.mdx"]),
        (f"\ufeff{A}\n", [A]),
    ],
)
def test_forms_of_a_sitemap(body: str | bytes, expected: list[str]) -> None:
    """Each form lists its pages with absolute addresses."""
    assert urls(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "<!DOCTYPE html><html><body>Not found</body></html>",
        "<rss><channel/></rss>",
        "",
        "   ",
        "Page not found. Sorry!",
        '{"error": 404}',
        b"\x1f\x8b\x08broken",
        "<",
    ],
)
def test_what_is_no_sitemap(body: str | bytes) -> None:
    """A soft 404, another XML, nothing, prose, JSON and a broken gzip are named as such."""
    with pytest.raises(NotASitemap):
        urls(body)


def test_hostile_xml_is_harmless(tmp_path) -> None:
    """Entities are neither read from files nor expanded a billion times."""
    secret = tmp_path / "secret"
    secret.write_text("https://docs.example.org/secret")
    read = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]><urlset><url><loc>&e;</loc></url><url><loc>{A}</loc></url></urlset>'
    assert urls(read) == [A]
    layers = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "lol">{layers}]><urlset><url><loc>https://docs.example.org/&l11;</loc></url></urlset>'
    began = time.monotonic()
    with contextlib.suppress(NotASitemap):
        assert "lol" not in "".join(urls(bomb))
    assert time.monotonic() - began < 2


def test_a_gzip_bomb_is_refused() -> None:
    """What unpacks to more than the protocol allows isn't read."""
    with pytest.raises(NotASitemap, match="larger than"):
        urls(gzip.compress(b"\n" * (51 * 1024 * 1024)))


def test_what_is_said_of_a_page_is_kept() -> None:
    """Lastmod and the hreflang alternates come with the page."""
    body = f"""<urlset {NS}><url><loc>{A}</loc><lastmod>2025-11-01</lastmod>
    <xhtml:link rel="alternate" hreflang="cs" href="/cs/a"/><xhtml:link rel="alternate" hreflang="en" href="{A}"/></url></urlset>"""
    page = parse_sitemap(body.encode(), URL).pages[0]
    assert page.lastmod == "2025-11-01"
    assert page.alternates == {"cs": "https://docs.example.org/cs/a", "en": A}


def test_fifty_thousand_addresses_take_seconds() -> None:
    """The largest sitemap that the protocol allows is read in less than five seconds."""
    body = f"<urlset {NS}>" + "".join(f"<url><loc>{A}/{n}</loc></url>" for n in range(50_000)) + "</urlset>"
    began = time.process_time()  # of this process alone: others may keep the machine busy
    assert len(urls(body)) == 50_000
    assert time.process_time() - began < 5


async def test_an_index_is_followed_and_other_hosts_are_listed_with_the_reason(
    site: LocalSite, fetcher: Fetcher
) -> None:
    """Nested sitemaps count as one; what isn't read is named, never dropped silently."""
    site.put(
        "/sitemap.xml",
        f"<sitemapindex {NS}><sitemap><loc>{{site}}/1.xml.gz</loc></sitemap><sitemap><loc>2.txt</loc></sitemap></sitemapindex>",
    )
    one = f"<urlset {NS}><url><loc>{site.url}/a</loc></url><url><loc>https://evil.example/x</loc></url></urlset>"
    site.put("/1.xml.gz", gzip.compress(one.encode()), "application/gzip")
    site.put("/2.txt", "/b\n/a\nnot an address\n", "text/plain")
    read = await listed(f"{site.url}/sitemap.xml", fetcher)
    assert [entry.url for entry in read.entries] == [f"{site.url}/a", f"{site.url}/b"]
    assert {entry.source for entry in read.entries} == {f"{site.url}/sitemap.xml"}
    assert {skipped.url: skipped.reason for skipped in read.skipped} == {
        "https://evil.example/x": "on a host that isn't one of the given sites",
        "not an address": "is no web address",
    }
    assert read.complete == {f"{site.url}/sitemap.xml"}


async def test_a_dead_part_makes_the_sitemap_incomplete(site: LocalSite, fetcher: Fetcher) -> None:
    """The other parts are read, but a page's absence proves nothing then; an index that lists itself ends."""
    site.put(
        "/sitemap.xml",
        f"<sitemapindex {NS}>"
        + "".join(
            f"<sitemap><loc>{{site}}/{name}</loc></sitemap>" for name in ("1.txt", "dead.xml", "sitemap.xml", "1.txt")
        )
        + "</sitemapindex>",
    )
    site.put("/1.txt", "/a\n", "text/plain")
    site.put("/dead.xml", "", status=500)
    read = await listed(f"{site.url}/sitemap.xml", fetcher)
    assert [entry.url for entry in read.entries] == [f"{site.url}/a"]
    assert read.complete == frozenset()
    assert any("answered 500" in skipped.reason for skipped in read.skipped)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("<urlset></urlset>", 200, "lists no page"),
        ("<html>soft 404</html>", 200, "an HTML page, not a sitemap"),
        ("gone", 404, "answered 404"),
        ("boom", 500, "answered 500"),
    ],
)
async def test_a_sitemap_that_cannot_be_used_is_an_error(
    site: LocalSite, fetcher: Fetcher, body: str, status: int, message: str
) -> None:
    """None of them is taken for a site without pages."""
    site.put("/sitemap.xml", body, status=status)
    with pytest.raises(SitemapError, match=message):
        await listed(f"{site.url}/sitemap.xml", fetcher)


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
    with pytest.raises(SettingsError, match="no web address"):
        await listed("docs.example.org", fetcher)
