"""Twenty sitemaps as they are found, served over HTTP: what each brings, and that nothing of it is dropped silently."""

from __future__ import annotations

import gzip
import time
from dataclasses import dataclass, field

import pytest

from app.core.errors import SitemapError
from ingestion.crawl.fetch import Fetcher
from ingestion.sources import Source
from tests.ingestion.local_site import LocalSite, list_sources

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
DTD = "<!DOCTYPE urlset [<!ENTITY {}>]>"
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def urlset(*locs: str, head: str = "<?xml version='1.0' encoding='UTF-8'?>", ns: str = NS) -> str:
    return f"{head}<urlset {ns}>" + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>"


@dataclass
class Case:
    """A body, and what comes of it: pages, what is left out by reason, or an error. `{site}` stands for the site."""

    name: str
    body: str | bytes
    pages: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    error: str = ""
    parts: dict[str, str | bytes] = field(default_factory=dict)


def listing(*locs: str) -> str:
    return "<sitemapindex>" + "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs) + "</sitemapindex>"


NO_ADDRESS = "isn't a web address"
IMAGES = "http://www.google.com/schemas/sitemap-image/1.1"
PICTURE = "<i:image><i:loc>{site}/p.png</i:loc></i:image>"
UTF_16, LATIN_2 = (f"<?xml version='1.0' encoding='{name}'?>" for name in ("UTF-16", "iso-8859-2"))
HALF = urlset("{site}/a", "{site}/b").removesuffix("</urlset>") + "<url><loc>{site}/half-an-addr"
OTHERS = ("https://evil.example/x", "file:///etc/passwd", "javascript:alert(1)", "http://[::1")
DEAD = "The sitemap {site}/dead.xml can't be read: answered 404; check its address."
ODD_PARTS = listing("{site}/sitemap.xml", "{site}/dead.xml", "https://evil.example/s.xml", "{site}/1.txt")
CASES = [
    Case("plain xml", urlset("{site}/a", "{site}/b"), ["/a", "/b"]),
    Case("no namespace", urlset("{site}/a", ns=""), ["/a"]),
    Case("byte order mark", "\ufeff" + urlset("{site}/a"), ["/a"]),
    Case("utf-16", urlset("/a", head=UTF_16).encode("utf-16"), ["/a"]),
    Case("leading blank lines", "\n\n  " + urlset("{site}/a"), ["/a"]),
    Case(
        "index of xml, gzip and text",
        listing("{site}/1.xml.gz", "2.txt"),
        ["/a", "/b"],
        parts={"/1.xml.gz": urlset("/a"), "/2.txt": "b\n"},
    ),
    Case(
        "images and cdata",
        f"<urlset {NS} xmlns:i='{IMAGES}'><url><loc><![CDATA[{{site}}/a]]></loc>{PICTURE}</url></urlset>",
        ["/a"],
    ),
    Case("comments and a fragment", f"<!-- x --><urlset {NS}><!-- y --><url><loc>/a#part</loc></url></urlset>", ["/a"]),
    Case("gzip twice", gzip.compress(gzip.compress(b"/a\n")), ["/a"]),
    Case("text with a byte order mark and comments", "\ufeff/a\n# comment\n", ["/a"]),
    Case("plain text", "{site}/a\r\n\r\n{site}/b\n", ["/a", "/b"]),
    Case("text with relative paths", "/a\nsub/b.mdx\n", ["/a", "/sub/b.mdx"]),
    Case("unescaped ampersand", urlset("{site}/a?x=1&y=2"), ["/a?x=1&y=2"]),
    Case(
        "truncated",
        HALF,
        ["/a", "/b"],
        {"{site}/sitemap.xml": "sitemap without an end: what it lists after that is unknown"},
    ),
    Case("declared iso-8859-2", urlset("{site}/příručka", head=LATIN_2).encode("iso-8859-2"), ["/příručka"]),
    Case("declared wrongly", urlset("{site}/a", "{site}/ř").encode("iso-8859-2"), ["/a", "/ř"]),
    Case("text declared wrongly", "/a\n/ř\n".encode("windows-1250"), ["/a", "/ř"]),
    Case(
        "external entity",
        DTD.format('e SYSTEM "file:///etc/passwd"') + urlset("&e;", "{site}/a", head=""),
        ["/a"],
        {"{e}": NO_ADDRESS},
    ),
    Case(
        "parameter entity from a server",
        '<!DOCTYPE urlset [<!ENTITY % e SYSTEM "{site}/evil.dtd"> %e;]>' + urlset("{site}/a", head=""),
        ["/a"],
    ),
    Case(
        "billion laughs",
        f'<!DOCTYPE urlset [<!ENTITY l0 "lol">{LAUGHS}]>' + urlset("{site}/&l9;", head=""),
        error=r"None of the pages .*/\{l9\}: isn't a web address",
    ),
    Case("whitespace around loc", urlset("\n\t {site}/a \n"), ["/a"]),
    Case(
        "other hosts and schemes",
        urlset("{site}/a", *OTHERS, ""),
        ["/a"],
        {
            OTHERS[0]: "on a host that isn't one of the given sites",
            **dict.fromkeys((*OTHERS[1:], "(empty)"), NO_ADDRESS),
        },
    ),
    Case("soft 404", "<!DOCTYPE html><html><body>Not found", error="an HTML page, not a sitemap"),
    Case("other xml", "<rss><channel/></rss>", error="sitemap"),
    Case("prose", "Page not found. Sorry!", error="sitemap"),
    Case("json", '{"error": 404}', error="sitemap"),
    Case("broken gzip", b"\x1f\x8b\x08broken", error="sitemap"),
    Case("half a tag", "<", error="sitemap"),
    Case("no pages", urlset(), error="lists no page"),
    Case("nothing", "", error="is empty"),
    Case("gzip bomb", gzip.compress(b"\n" * (51 * 1024 * 1024)), error="larger than"),
    Case("listed twice, with fragments", urlset("{site}/a", "{site}/a#b", "{site}/%61"), ["/a"]),
    Case(
        "an index that lists itself and dead parts",
        ODD_PARTS,
        ["/a"],
        {
            "{site}/sitemap.xml": "sitemap listed twice",
            "{site}/dead.xml": DEAD,
            "https://evil.example/s.xml": "sitemap on a host that isn't one of the given sites",
        },
        parts={"/1.txt": "/a\n"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_what_a_sitemap_brings(site: LocalSite, fetcher: Fetcher, case: Case) -> None:
    """Each case ends with just these pages, just these reasons, or just this error, within ten seconds of CPU time.

    Where a part can't be read, a page that isn't listed may still exist.
    """
    body = case.body.encode() if isinstance(case.body, str) else case.body
    site.put("/sitemap.xml", body.replace(b"{site}", site.url.encode()), "application/xml")
    for path, part in case.parts.items():
        packed = gzip.compress(str(part).encode()) if path.endswith(".gz") else part
        site.put(path, packed, "application/octet-stream")
    began = time.process_time()
    if case.error:
        with pytest.raises(SitemapError, match=case.error):
            await list_sources([Source(url=f"{site.url}/sitemap.xml")], fetcher)
    else:
        listed = await list_sources([Source(url=f"{site.url}/sitemap.xml")], fetcher)
        assert [entry.url.removeprefix(site.url) for entry in listed.entries] == case.pages
        expected = {k.replace("{site}", site.url): v.replace("{site}", site.url) for k, v in case.left.items()}
        assert {skip.url: skip.reason for skip in listed.skipped} == expected
        doubtful = case.name in ("truncated", "an index that lists itself and dead parts")
        assert listed.complete == (frozenset() if doubtful else listed.sources)
    assert time.process_time() - began < 10
    assert site.statuses("/evil.dtd") == []


async def test_depth_and_number_are_limited_and_told(
    site: LocalSite, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond six levels or the number of sitemaps the rest is named, and then absence proves nothing."""
    for level in range(8):
        site.put(f"/{level}.xml", listing(f"/p{level}.txt", f"/{level + 1}.xml"))
        site.put(f"/p{level}.txt", f"/page{level}\n", "text/plain")
    deep = await list_sources([Source(url=f"{site.url}/0.xml")], fetcher)
    assert [entry.url for entry in deep.entries] == [f"{site.url}/page{n}" for n in range(5)]
    assert {skip.url: skip.reason for skip in deep.skipped} == {
        f"{site.url}/{name}": "sitemap nested more than 5 deep" for name in ("6.xml", "p5.txt")
    }
    assert deep.complete == frozenset()
    monkeypatch.setattr("ingestion.crawl.sitemap.MAX_SITEMAPS", 3)
    few = await list_sources([Source(url=f"{site.url}/0.xml")], fetcher)
    assert {skip.reason for skip in few.skipped} == {"more than 3 sitemaps"}
    assert few.entries
    assert few.complete == frozenset()


async def test_several_sources_may_list_the_same(site: LocalSite, fetcher: Fetcher) -> None:
    """A sitemap that brings nothing new is no error, and what one source leaves out another may bring."""
    site.put("/all.txt", "/a\n/b\n", "text/plain")
    site.put("/one.txt", "/a\n", "text/plain")
    all_but_a = Source(url=f"{site.url}/all.txt", exclude="/a")
    listed = await list_sources(
        [all_but_a, Source(url=f"{site.url}/one.txt"), Source(url=f"{site.url}/all.txt")], fetcher
    )
    assert [entry.url.removeprefix(site.url) for entry in listed.entries] == ["/b", "/a"]
    assert listed.skipped == ()


async def test_patterns_that_leave_nothing_are_an_error(site: LocalSite, fetcher: Fetcher) -> None:
    """A slip in a pattern must not look like a site from which everything is gone."""
    site.put("/s.txt", "/a\n/b\n", "text/plain")
    with pytest.raises(SitemapError, match=r"None of the pages .*/a: matches no include pattern \(/x/\*\)"):
        await list_sources([Source(url=f"{site.url}/s.txt", include="/x/*")], fetcher)


@pytest.mark.slow
async def test_fifty_thousand_pages_with_counterparts_take_seconds(site: LocalSite, fetcher: Fetcher) -> None:
    """Fetched, unpacked, read, filtered and made unique in less than forty seconds of CPU time, and all of them are there."""
    rows = "".join(
        f"<url><loc>{site.url}/en/{n}</loc><lastmod>2025-11-01</lastmod>"
        f'<x:link rel="alternate" hreflang="cs" href="{site.url}/cs/{n}"/></url>'
        for n in range(50_000)
    )
    body = f"<urlset {NS} xmlns:x='http://www.w3.org/1999/xhtml'>{rows}</urlset>"
    site.put("/sitemap.xml.gz", gzip.compress(body.encode()), "application/gzip")
    began = time.process_time()
    listed = await list_sources([Source(url=f"{site.url}/sitemap.xml.gz", exclude="*/49999")], fetcher)
    assert time.process_time() - began < 40
    assert len(listed.entries) == 49_999
    assert listed.entries[7].alternates == {"cs": f"{site.url}/cs/7"}
    assert [skip.reason for skip in listed.skipped] == ["excluded by */49999"]
