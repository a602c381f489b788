"""A page's own Markdown is found where sites put it, taken when it is as rich as the HTML, and asked for sparingly."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.core.types import Page
from ingestion.convert.samples import SAMPLE
from ingestion.crawl.exchange import linked_markdown, refuses_ai_input
from ingestion.sources import Source
from tests.ingestion.local_site import Answer, LocalSite
from tests.ingestion.test_run import Index, index, outcomes

__all__ = ["index"]
WORDS = "Some words about the storage of the cluster that both forms of this page have in common with each other."


def html(name: str, head: str = "") -> str:
    return f"<html lang=en><head>{head}</head><main><h1>{name}</h1><h2 id=setup-{name}>Setup</h2><p>{WORDS}</p></main></html>"


def markdown(name: str) -> str:
    return f"# {name}\n\n## Setup\n\n{WORDS} Raw {name}.\n"


def both(site: LocalSite, *names: str, beside: str = "{}.md") -> str:
    """Pages as HTML with their Markdown beside them."""
    for name in names:
        site.put(f"/{name}", html(name))
        site.put(f"/{beside.format(name)}", markdown(name), "text/markdown")
    return site.sitemap(*(f"/{name}" for name in names))


async def page(index: Index, path: str) -> Page:
    url = (await index.pages())[path].url
    found = await (await index.store.live()).page(url)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("names", "beside"),
    [(("a", "b", "c"), "{}.md"), (("a", "b"), "{}.mdx"), (("a/", "b/"), "{}index.md"), (("a.html",), "a.md")],
)
async def test_markdown_beside_the_pages_is_found_once_per_site(
    site: LocalSite, index: Index, names: tuple[str, ...], beside: str
) -> None:
    """The first page shows where it is; anchors come from the HTML; readers are sent to the page."""
    report = await index.run(both(site, *names, beside=beside))
    assert set(outcomes(report).values()) == {"new"}
    for name in names:
        found = await page(index, f"/{name}")
        assert f"Raw {name}." in found.markdown
        assert f"## Setup {{#setup-{name}}}" in found.markdown


async def test_a_site_without_markdown_is_asked_at_one_page_only(site: LocalSite, index: Index) -> None:
    """Two requests in vain for a whole site, not two for each page; a page that answers HTML to all is no Markdown."""
    for name in "abcd":
        site.page(f"/{name}", name, f"{WORDS} Page {name}.")
    site.page("/a.md", "Not found", WORDS)
    await index.run(site.sitemap("/a", "/b", "/c", "/d"))
    guesses = [path for path, _, _ in site.log if path.endswith((".md", ".mdx"))]
    assert len(guesses) == 2
    assert len({path.partition(".")[0] for path in guesses}) == 1


async def test_poorer_markdown_is_left(site: LocalSite, index: Index) -> None:
    """With less than half of the HTML's words it has lost what its components would have shown."""
    site.put("/a", html("a", '<link rel=alternate type="text/markdown" href="/raw/a.md">'))
    site.put("/raw/a.md", "# a\n\nSome words.\n", "text/markdown")
    await index.run(site.sitemap("/a"))
    assert WORDS in (await page(index, "/a")).markdown


async def test_the_better_form_of_each_page_is_read_and_the_report_says_why(site: LocalSite, index: Index) -> None:
    """The next run decides the same; a source can insist on its Markdown unless that is broken."""
    sitemap = both(site, "a", "b", "c")
    site.put("/b.md", markdown("b") + "\n{{< tabs >}}\n", "text/markdown")
    report = await index.run(sitemap)
    assert "Raw a." in (await page(index, "/a")).markdown
    assert "Raw b." not in (await page(index, "/b")).markdown
    (warning,) = report.warnings
    assert warning.startswith(f"{sitemap}: HTML was read because the Markdown is worse (the Markdown of {site.url}/b")
    assert warning.endswith("has left-overs of templates, as {{< tabs >}}) on 1 pages")
    assert set(outcomes(await index.run(sitemap)).values()) == {"unchanged"}
    site.put("/c", html("c") + "<table><tr><th>x</table>")
    report = await index.run(Source(url=sitemap, markdown="suffix:.md"))
    assert "Raw c." in (await page(index, "/c")).markdown
    assert "Raw b." not in (await page(index, "/b")).markdown
    assert report.warnings[0].startswith(f"{sitemap}: HTML was read because the Markdown is worse")


@pytest.mark.parametrize(("link", "shown"), [("../b/", "/guide/b/"), ("b.md", "/guide/b")])
async def test_links_of_markdown_start_where_those_of_the_html_show(
    site: LocalSite, index: Index, link: str, shown: str
) -> None:
    """The page's own address where the site wrote them for the page, the file's where it gives the source as it is."""
    site.put("/guide/a/", html("a").replace(WORDS, f"{WORDS} <a href={shown}>b</a>"))
    site.put("/guide/a.md", f"{markdown('a')}\n[b]({link})\n", "text/markdown")
    await index.run(site.sitemap("/guide/a/"))
    found = (await page(index, "/guide/a/")).markdown
    assert "Raw a." in found
    assert f"[b]({site.url}{shown})" in found


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ('</a.md>; rel="alternate"; type="text/markdown"', "/a.md"),
        ("</x.css>; rel=preload, </a.md>; type=text/markdown; rel=alternate", "/a.md"),
        ('<https://h.example/a.md>;rel="canonical alternate";type="text/markdown"', "https://h.example/a.md"),
        ('</a.md>; rel="alternate"; type="application/json"', ""),
        ("</a.md>; rel=alternate", ""),
        ("<", ""),
        ("", ""),
    ],
)
def test_link_headers(header: str, target: str) -> None:
    """The alternate that is Markdown is found among others."""
    assert linked_markdown(header) == target


async def test_a_link_header_leads_to_the_markdown(site: LocalSite, index: Index) -> None:
    """As the link in the page does; one to another host isn't followed."""
    site.put("/a", html("a"), headers={"Link": '</raw/a>; rel="alternate"; type="text/markdown"'})
    site.put("/raw/a", markdown("a"), "text/markdown")
    site.put("/b", html("b"), headers={"Link": '<http://127.0.0.1:9/b>; rel="alternate"; type="text/markdown"'})
    site.put("/c", html("c"), headers={"Link": '<http://[x>; rel="alternate"; type="text/markdown"'})
    await index.run(site.sitemap("/a", "/b", "/c"))
    assert "Raw a." in (await page(index, "/a")).markdown
    assert WORDS in (await page(index, "/b")).markdown
    assert WORDS in (await page(index, "/c")).markdown


def negotiating(site: LocalSite, name: str) -> None:
    """A page that answers Markdown or HTML by what the request accepts."""
    site.answers[f"/{name}"] = lambda: (
        Answer(markdown(name).encode(), "text/markdown")
        if site.accepting.startswith("text/markdown")
        else Answer(html(name).encode())
    )


@pytest.mark.parametrize(
    ("mode", "raw", "asked"),
    [
        ("auto", True, ["/a", "/a"]),
        ("accept", True, ["/a"]),
        ("off", False, ["/a"]),
        ("suffix:.mdx", True, ["/a.mdx", "/a"]),
    ],
)
async def test_each_way_of_asking(site: LocalSite, index: Index, mode: str, raw: bool, asked: list[str]) -> None:
    """Auto and accept ask for Markdown, off for HTML, a suffix asks for the file and then for the page."""
    negotiating(site, "a")
    source = Source(url=site.sitemap("/a"), markdown=mode, anchors="none")
    await index.run(source)
    assert ("Raw a." in (await page(index, "/a")).markdown) is raw
    assert [path for path, _, _ in site.log if path.startswith("/a")] == asked


LISTED = [f"/guide/page{number}" for number in range(20)]


def serving_markdown(site: LocalSite, bad: Sequence[str] = (), text: str = "{{< tabs >}}") -> str:
    """A site that answers with Markdown where it is accepted; on bad pages it has lost something."""
    for path in LISTED:
        code = f"<pre>make {path}</pre>"
        left = text if path in bad else f"```\nmake {path}\n```"
        raw = f"# {path}\n\n## Use it\n\n## Ask us\n\n{WORDS} Raw {path}.\n\n{left}\n"
        page_ = f"<main><div>You read an old version of this.</div><h1>{path}</h1><h2 id=use-it>Use it</h2><h2 id=ask-us>Ask us</h2><p>{WORDS}</p>{code}</main>"
        forms = Answer(raw.encode(), "text/markdown"), Answer(page_.encode())
        site.answers[path] = lambda forms=forms: forms[not site.accepting.startswith("text/markdown")]  # type: ignore[misc]
    return site.sitemap(*LISTED)


def asked(site: LocalSite) -> tuple[int, int]:
    """Requests for Markdown and for HTML since the last call."""
    accepted = [headers["Accept"].startswith("text/markdown") for path, _, headers in site.log if path in LISTED]
    site.log.clear()
    return accepted.count(True), accepted.count(False)


async def test_a_sample_shows_that_the_markdown_is_good(site: LocalSite, index: Index) -> None:
    """Three more pages are asked for as HTML, which gives the anchors, too; later runs cost nothing where nothing changed."""
    sitemap = serving_markdown(site)
    report = await index.run(sitemap, crawl_parallel=1)
    markdown_, html_ = asked(site)
    assert (markdown_ <= 20 + SAMPLE, html_) == (True, SAMPLE)
    assert report.warnings == []
    for path in LISTED:
        assert f"Raw {path}." in (await page(index, path)).markdown
        assert "## Use it {#use-it}" in (await page(index, path)).markdown
    assert set(outcomes(await index.run(sitemap, crawl_parallel=1)).values()) == {"unchanged"}
    assert asked(site) == (20, 0)


async def test_a_site_whose_markdown_is_worse_is_read_as_html(site: LocalSite, index: Index) -> None:
    """One request a page from then on, in later runs too, without what they all repeat, and the report says why."""
    sitemap = serving_markdown(site, LISTED, text="No code.")
    report = await index.run(sitemap, crawl_parallel=1)
    assert "lacks 1 of 1 lines of code, as make /guide/page" in "".join(report.warnings)
    for path in LISTED:
        assert f"make {path}" in (await page(index, path)).markdown
        assert "an old version" not in (await page(index, path)).markdown
    assert sum(asked(site)) < 36  # those of the sample, and those that are read meanwhile
    assert set(outcomes(await index.run(sitemap, crawl_parallel=1)).values()) == {"unchanged"}
    assert sum(asked(site)) < 36  # those of the sample, and those that are read meanwhile


@pytest.mark.parametrize("mode", ["auto", "accept"])
async def test_a_page_with_left_overs_of_templates_is_compared(site: LocalSite, index: Index, mode: str) -> None:
    """Wherever it is; a source that insists on Markdown keeps what is only poorer."""
    sitemap = serving_markdown(site, LISTED[5:6])
    report = await index.run(Source(url=sitemap, markdown=mode), crawl_parallel=1)
    assert "on 1 pages" in report.text
    for path in LISTED:
        assert (f"Raw {path}." in (await page(index, path)).markdown) is (path != LISTED[5])
    asked(site)
    again = await index.run(Source(url=sitemap, markdown=mode), crawl_parallel=1)
    assert (set(outcomes(again).values()), asked(site)) == ({"unchanged"}, (20, 0))


async def test_pages_listed_as_markdown_are_known_by_the_address_of_their_html(site: LocalSite, index: Index) -> None:
    """Where the folder needs its slash, or the page its ending; links start where those of the HTML do."""
    for name in "ab":
        other = "ab".replace(name, "")
        site.put(f"/guide/{name}.md", f"{markdown(name)}\n[x](../{other}/)\n", "text/markdown")
        site.put(f"/guide/{name}", "", status=301, headers={"Location": f"/guide/{name}/"})
        site.put(f"/guide/{name}/", html(name).replace(WORDS, f"{WORDS} <a href=../{other}/>x</a>"))
        site.put(f"/old/{name}.md", f"{markdown(name)} Old.\n", "text/markdown")
        site.put(f"/old/{name}.html", html(name))
    paths = ("/guide/a.md", "/guide/b.md", "/old/a.md", "/old/b.md")
    await index.run(site.sitemap(*paths[:2]), site.sitemap(*paths[2:], at="/old.xml"))
    assert set(await index.pages()) == {"/guide/a/", "/guide/b/", "/old/a.html", "/old/b.html"}
    assert f"[x]({site.url}/guide/b/)" in (await page(index, "/guide/a/")).markdown
    again = await index.run(site.sitemap(*paths[:2]), site.sitemap(*paths[2:], at="/old.xml"))
    assert {found.outcome for found in again.pages} == {"unchanged"}
    assert site.statuses("/old/a.md")[-1] == 304


async def test_a_suffix_costs_one_request_a_page(site: LocalSite, index: Index) -> None:
    """The page itself is not asked for, the next run is conditional, and a page without the file is read as HTML."""
    sitemap = both(site, "a", "b", beside="{}.mdx")
    del site.answers["/b.mdx"]
    source = Source(url=sitemap, markdown="suffix:.mdx", anchors="none")
    await index.run(source)
    assert "Raw a." in (await page(index, "/a")).markdown
    assert WORDS in (await page(index, "/b")).markdown
    assert set(outcomes(await index.run(source)).values()) == {"unchanged"}
    assert site.statuses("/a.mdx") == [200, 304]
    assert site.statuses("/a") == []
    assert site.statuses("/b") == [200, 304]


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


@pytest.mark.parametrize(
    ("signal", "refused"),
    [
        ("ai-input=no", True),
        ("search=yes, ai-train=no, ai-input=no", True),
        ("AI-Input = no", True),
        ("search=yes,ai-input=yes", False),
        ("xai-input=no", False),
        ("ai-train=no", False),
        ("", False),
    ],
)
def test_content_signals(signal: str, refused: bool) -> None:
    """Only the use as input of answers matters here."""
    assert refuses_ai_input(signal) is refused


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
