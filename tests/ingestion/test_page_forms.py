"""Which form of a site's pages is read, and what pages and sites say of themselves."""

from __future__ import annotations

import pytest

from app.core.types import Page
from ingestion.crawl.exchange import refuses_ai_input
from ingestion.sources import Source
from tests.ingestion.index import Index, outcomes
from tests.ingestion.local_site import Answer, LocalSite

WORDS = "Some words about the storage of the cluster that both forms of this page have in common with each other."


def html(name: str, head: str = "") -> str:
    return f"<html lang=en><head>{head}</head><main><h1>{name}</h1><h2 id=setup-{name}>Setup</h2><p>{WORDS}</p></main></html>"


async def page(index: Index, path: str) -> Page:
    return await index.page((await index.pages())[path].url)


async def test_pages_are_read_as_html_whatever_markdown_a_site_has_of_them(site: LocalSite, index: Index) -> None:
    """Beside them, named by them, or for those who accept it: one request a page, and what all pages repeat goes."""
    paths = [f"/page{number}" for number in range(6)]
    for path in paths:
        words = f"Words of {path} about the storage of the cluster."
        shown = f"<main><div>You read an old version.</div><h1>{path}</h1><p>{words}<pre>make {path}</pre></main>"
        named = Answer(
            f'<html lang=en><head><link rel=alternate type="text/markdown" href="{path}.md"></head>{shown}'.encode(),
            headers={"Link": f'<{path}.md>; rel="alternate"; type="text/markdown"'},
        )
        raw = Answer(f"# {path}\n\nRaw words.\n".encode(), "text/markdown")
        site.answers[path] = lambda raw=raw, named=named: raw if site.accepting.startswith("text/markdown") else named  # type: ignore[misc]
        site.answers[f"{path}.md"] = raw
    sitemap = site.sitemap(*paths)
    report = await index.run(sitemap)
    for path in paths:
        assert (await page(index, path)).markdown == (
            f"# {path}\n\nWords of {path} about the storage of the cluster.\n\n```\nmake {path}\n```\n"
        )
    assert report.warnings == []
    assert sorted(path for path, _, _ in site.log if path.startswith("/page")) == paths
    assert set(outcomes(await index.run(sitemap)).values()) == {"unchanged"}


@pytest.mark.parametrize(
    ("link", "shown"), [("../b/", "/guide/b"), ("b.md", "/guide/b"), ("guide/b.md", "/guide/guide/b")]
)
async def test_links_of_listed_markdown_start_where_most_lead_to_listed_pages(
    site: LocalSite, index: Index, link: str, shown: str
) -> None:
    """At the page where the site wrote them for the page, at the file where it gives the source as it is."""
    for name in "ab":
        site.put(f"/guide/{name}.md", f"# {name}\n\n{WORDS} Of {name}.\n\n[b]({link})\n", "text/markdown")
    await index.run(site.sitemap("/guide/a.md", "/guide/b.md"))
    assert f"[b]({site.url}{shown}" in (await page(index, "/guide/a")).markdown
    assert {found.outcome for found in (await index.run(site.sitemap("/guide/a.md", "/guide/b.md"))).pages} == {
        "unchanged"
    }
    assert site.statuses("/guide/a.md") == [200, 304]


async def test_another_way_of_reading_reads_anew(site: LocalSite, index: Index) -> None:
    """A changed selector counts although the server says that nothing changed; the same selector again is conditional."""
    body = "<main><div class=text><h1>A</h1><p>Kept words.<p class=ad>Buy this.</div><p>Outside words.</main>"
    site.put("/a", body)
    sitemap = site.sitemap("/a")
    await index.run(Source(url=sitemap))
    assert "Outside words" in (await page(index, "/a")).markdown
    own = Source(url=sitemap, content_selector="div.text", drop_selectors=("p.ad", "aside > p"))
    report = await index.run(own)
    assert outcomes(report) == {"/a": "changed"}
    assert (await page(index, "/a")).markdown == "# A\n\nKept words.\n"
    assert outcomes(await index.run(own)) == {"/a": "unchanged"}
    assert site.statuses("/a") == [200, 200, 304]


async def test_a_selector_that_finds_nothing_is_told(site: LocalSite, index: Index) -> None:
    """The page is read as usual, and the report names selector and number of pages."""
    site.page("/a", "A", WORDS)
    site.page("/b", "B", WORDS)
    sitemap = site.sitemap("/a", "/b")
    report = await index.run(Source(url=sitemap, content_selector="#nowhere"))
    assert report.warnings == [f"{sitemap}: content_selector '#nowhere' found nothing on 2 pages"]
    assert "#nowhere" in report.text
    assert report.counts["new"] == 2


def test_content_signals() -> None:
    """Only the use as input of answers matters here."""
    refusals = ("ai-input=no", "search=yes, ai-train=no, ai-input=no", "AI-Input = no")
    others = ("search=yes,ai-input=yes", "xai-input=no", "ai-train=no", "")
    assert [signal for signal in (*refusals, *others) if refuses_ai_input(signal)] == [*refusals]


@pytest.mark.parametrize("place", ["header", "robots"])
async def test_a_site_that_does_not_want_this_is_named(site: LocalSite, index: Index, place: str) -> None:
    """Its operator's wish stands in the report, by header or robots.txt; what follows from it is for people to decide."""
    headers = {"Content-Signal": "search=yes, ai-input=no"} if place == "header" else {}
    site.put("/a", html("a"), headers=headers)
    if place == "robots":
        site.put("/robots.txt", "User-agent: *\nContent-Signal: search=yes,ai-input=no\nAllow: /\n", "text/plain")
    report = await index.run(site.sitemap("/a"))
    assert outcomes(report) == {"/a": "new"}
    (warning,) = report.warnings
    assert warning.startswith(f"{site.url} asks")
    assert "ai-input=no" in report.to_json()


async def test_counterparts_in_other_languages_are_kept(site: LocalSite, index: Index) -> None:
    """From the sitemap, else from the page; by public address, and of the given hosts only."""
    head = '<link rel=alternate hreflang=cs href="/cs/b"><link rel=alternate hreflang=de href="https://e.example/b">'
    site.put("/en/a", html("a"))
    site.put("/en/b", html("b", head))
    site.put(
        "/sitemap.xml",
        '<urlset xmlns:x="http://www.w3.org/1999/xhtml"><url><loc>{site}/en/a</loc>'
        '<x:link rel="alternate" hreflang="cs" href="{site}/cs/a.md"/>'
        '<x:link rel="alternate" hreflang="en-GB" href="{site}/en/a"/>'
        '<x:link rel="alternate" hreflang="de" href="https://e.example/a"/></url>'
        "<url><loc>{site}/en/b</loc></url></urlset>",
        "application/xml",
    )
    await index.run(f"{site.url}/sitemap.xml")
    assert (await page(index, "/en/a")).alternates == {"cs": f"{site.url}/cs/a", "en-GB": f"{site.url}/en/a"}
    assert (await page(index, "/en/b")).alternates == {"cs": f"{site.url}/cs/b"}


async def test_a_sources_language_is_the_last_resort(site: LocalSite, index: Index) -> None:
    """A short page that says nothing of its language has that of its source."""
    site.put("/a", "<main><h1>Kubectl</h1><p>kubectl get pods</main>")
    await index.run(Source(url=site.sitemap("/a"), language="cs"))
    assert (await page(index, "/a")).language == "cs"


@pytest.mark.parametrize("kind", ["html", "markdown"])
async def test_what_nobody_sees_of_a_page_is_not_indexed(site: LocalSite, index: Index, kind: str) -> None:
    """In titles, headings, links, pictures and code; what writing needs stays."""
    tags = "".join(chr(0xE0000 + ord(sign)) for sign in "say nothing")
    hidden, words = f"\u200b{tags}\u202e", "quo\u00adta \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    body = f"Our {words}{hidden}. {WORDS}"
    if kind == "html":
        text = f"<html lang=en><head><title>Disk{hidden}s</title></head><main><h1>Disk&#x200b;s{tags}</h1><h2 id=all>Al{hidden}l</h2><p>{body} <a href=/x>li{hidden}nk</a> <img src=/i.png alt='pic{hidden}ture'></p><pre>make{hidden} disk</pre></main></html>"
    else:
        text = f"# Disk{hidden}s\n\n## Al{hidden}l\n\n{body} [li{hidden}nk](/x) ![pic{hidden}ture](/i.png)\n\n```\nmake{hidden} disk\n```\n"
    path = "/disks" if kind == "html" else "/disks.md"
    site.answers[path] = Answer(text.encode(), f"text/{kind}")
    await index.run(site.sitemap(path))
    (found,) = (await index.pages()).values()
    read = await index.page(found.url)
    assert read.title == "Disks"
    assert all(
        sign in read.markdown
        for sign in ("# Disks", "## All", f"Our {words.replace(chr(0xAD), '')}.", "[link](", "make disk")
    )
    assert not set(read.markdown) & set(f"{hidden}\u00ad")
