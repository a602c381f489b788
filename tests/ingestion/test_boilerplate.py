"""What most pages of a site repeat is left out without knowing its theme, the same in every run; pages that are none are left out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import lxml.html
import pytest

from app.core.errors import NotPublished, SitemapError
from app.core.generation import RepeatedBlock
from app.core.language import vocabulary
from ingestion.convert import SourceText, convert
from ingestion.convert.boilerplate.compare import MOST_BLOCKS, repeated_blocks, sampled
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.report import Report
from ingestion.sources import Source
from tests.ingestion.index import Index, outcomes
from tests.ingestion.local_site import LocalSite

BUILT = Path(__file__).parent / "built_site"
"""Sphinx with the theme of the Book project: announcement, version, sidebar, buttons, contents, pager, date; no scripts."""

PAGES = {f"/{file.relative_to(BUILT)}": file.read_text("utf-8") for file in sorted(BUILT.rglob("*.html"))}
CONTENT = [path for path in PAGES if path.startswith("/guide/") or path == "/index.html"]
URL = "https://docs.example.org"


def bare(html: str) -> str:
    """The page as if its theme were unknown: no class, id or role but those of the text, and no element but div around it."""
    page = lxml.html.document_fromstring(html)
    for element in page.iter():
        if element.tag not in ("h1", "h2", "section"):
            element.attrib.pop("id", None)
        if not re.search(r"highlight|admonition", element.get("class") or "") and element.tag != "pre":
            element.attrib.pop("class", None)
        element.attrib.pop("role", None)
        if element.tag in ("main", "article", "header", "footer", "aside", "nav"):
            element.tag = "div"
    return lxml.html.tostring(page, encoding="unicode")


class Themed(Index):
    """Runs over the sitemap of a site as a source with `keys`."""

    async def read(self, *, force: bool = False, **keys: object) -> Report:
        return await self.run(Source(url=f"{self.site.url}/sitemap.xml", **keys), force=force)


@pytest.fixture
async def index(tmp_path: Path, site: LocalSite) -> AsyncIterator[Themed]:
    """An empty index."""
    async with Themed(tmp_path / "data", site, languages="en") as made:
        yield made


async def test_a_built_site_whose_theme_is_unknown(site: LocalSite, index: Themed) -> None:
    """Its pages become what they are with the names of the theme. A later run leaves out the same, whatever has changed."""
    for path in CONTENT:
        site.put(path, bare(PAGES[path]))
    site.sitemap(*CONTENT)
    first = await index.read()
    expected = {path: convert(SourceText(site.url + path, PAGES[path])).markdown for path in CONTENT}
    assert _lines(await index.texts()) == _lines(expected)
    examples = {block.example for blocks in first.repeated.values() for block in blocks}
    assert {"previous First steps", "By The cluster team", "Repository Suggest edit"} <= examples
    assert "By The cluster team (on 100 % of the pages)" in first.text

    changed = PAGES["/guide/logs.html"].replace("one place", "a single place")
    site.put("/guide/logs.html", bare(changed))
    asked = len(site.log)
    second = await index.read()
    assert {path for path, outcome in outcomes(second).items() if outcome != "unchanged"} == {"/guide/logs.html"}
    pages = [status for path, status, _ in site.log[asked:] if path in CONTENT]
    assert sorted(pages) == [200, *[304] * (len(CONTENT) - 1)]  # the sample costs no request
    expected["/guide/logs.html"] = convert(SourceText(site.url + "/guide/logs.html", changed)).markdown
    assert _lines(await index.texts()) == _lines(expected)
    assert second.repeated == first.repeated

    generation = (await index.store.live()).info.id
    assert not (await index.read()).changed
    assert (await index.store.live()).info.id == generation


def _lines(texts: dict[str, str]) -> dict[str, list[str]]:
    return {path: [line for line in text.split("\n") if line.strip()] for path, text in texts.items()}


async def test_a_new_banner_is_left_out_and_a_selector_keeps_it(site: LocalSite, index: Themed) -> None:
    """A banner that all pages get changes the text of none, and what `keep_selectors` finds is text."""
    pages = [f"/page{number}" for number in range(8)]

    def put(banner: str) -> None:
        for number, path in enumerate(pages):
            words = f"Page {number} explains what step{number} does, who takes it and why it is taken at all. " * 3
            text = f"<h1>Step {number}</h1><p>{words}</p><h2 id=more>More {number}</h2><p>{words[:90]}</p>"
            site.put(
                path, f"<html lang=en><body><div>{banner}{text}<div><a href=/x{number}>Edit</a></div></div></body>"
            )

    put("")
    site.sitemap(*pages)
    await index.read()
    before = await index.texts()
    assert "Edit" not in "".join(before.values())
    put("<div class=banner><h4>Cookies</h4><p>We use cookies to count visits.</p></div>")
    report = await index.read()
    assert await index.texts() == before
    assert set(outcomes(report).values()) == {"unchanged"}
    assert ".banner: We use cookies to count visits. (on 100 % of the pages)" in report.text
    await index.read(keep_selectors=[".banner"])
    assert all("We use cookies to count visits." in text for text in (await index.texts()).values())


def _compared(pages: Sequence[str]) -> tuple[RepeatedBlock, ...]:
    entries = [Entry(f"{URL}/p{number}/", URL, Source(url=URL)) for number in range(len(pages))]
    read = [
        sampled(Fetched(entry.url, 200, page.encode(), "text/html", "utf-8"), entry, vocabulary())
        for entry, page in zip(entries, pages, strict=True)
    ]
    found = repeated_blocks([page for page in read if page])
    assert found == repeated_blocks([page for page in reversed(read) if page])
    return found


def _site(count: int, body: Callable[[int], str]) -> list[str]:
    words = "word{n}a word{n}b says what only this page number {n} knows of its own subject"
    return [
        f"<html lang=en><body><main>{body(n).replace('OWN', words.format(n=n))}</main></body>" for n in range(count)
    ]


def test_what_repeats_and_is_content_stays() -> None:
    """Labels, sections, code, tables, warnings on some pages, and all of a site that is too small to tell."""
    own = "<p>OWN</p>"
    cases: dict[str, Callable[[int], str]] = {
        "a warning on 30 % of the pages": lambda n: (
            f"<h1>T{n}</h1>{'<p>Only for admins of it.</p>' * (n % 10 < 3)}{own}"
        ),
        "a code sample": lambda n: f"<h1>T{n}</h1><pre>pip install it</pre>{own}<pre>it --help</pre>",
        "labels": lambda n: (
            f"<h1 id=a>f{n}</h1><p>Syntax</p><p>OWN</p><p><b>Parameters</b></p>{own}<p>Returns</p>{own}"
        ),
        "a section": lambda n: f"<h1>T{n}</h1>{own}<h2 id=s>See also</h2><ul><li><a href=/all>All</a></li></ul>",
        "a nested section": lambda n: (
            f"<h1>T{n}</h1>{own}<section id=e><h2>Exit status</h2><p>0 means success always.</p></section>"
        ),
        "a table": lambda n: (
            f"<h1>T{n}</h1>{own}<h2 id=o>Options</h2><table><tr><th>Name<th>Text<tr><td>-v<td>talks</table>{own}"
        ),
        "a text in the middle": lambda n: f"<h1>T{n}</h1>{own}<p>It is not to be used in public places.</p>{own}",
        "next steps of four pages": lambda n: (
            f"<h1>T{n}</h1>{own}<p>All of them say the same here.</p>" if n < 4 else ""
        ),
        "pages of links": lambda n: (
            f"<h1>T{n}</h1><ul><li><a href=/x{n}/>Word{n} of it</a><li><a href=/y{n}/>Other</a></ul>"
        ),
        "what pages are about": lambda n: f"<h1>T{n}</h1><p>n{n}</p><p>{'They say it all again. ' * 9}</p>",
    }
    for name, body in cases.items():
        assert _compared(_site(20, body)) == (), name
    tail = f"<h1>T</h1>{own}<p>Was this page of any help to you?</p>"
    assert _compared(_site(4, lambda _: tail)) == ()
    assert [one.example for one in _compared(_site(5, lambda _: tail))] == ["Was this page of any help to you?"]
    many = "".join(f"<p>Advice {n} for all of you</p>" for n in range(MOST_BLOCKS + 9))
    assert len(_compared(_site(5, lambda n: f"<h1>T{n}</h1><p>{'OWN ' * 900}</p>{many}"))) == MOST_BLOCKS


def test_a_note_with_the_address_of_its_page_is_repeated_and_a_short_text_is_not() -> None:
    def body(number: int) -> str:
        note = f"<p>You can read better optimized documentation for machines at /page{number}.md in another format.</p>"
        return f"{note}<h1>Page {number}</h1><p>GET /volumes/{number}</p><p>OWN OWN</p>"

    assert [block.example[:21] for block in _compared(_site(8, body))] == ["You can read better o"]


def test_links_around_the_text_are_found_by_where_they_lead() -> None:
    """Breadcrumbs, pagers and a sidebar that differs from page to page, without a name of any kind; links of the text stay."""

    def body(number: int) -> str:
        side = "".join(f"<li><a href=/p{n}/>Page {n}</a>" for n in range(9)) + f"<li><a href=/p{number}/x>X{number}</a>"
        crumbs = f"<ul><li><a href=/>Home</a><li><a href=/p{number}/>T{number}</a></ul>"
        pager = f"<div><a href=/p{number - 1}/>Before: {number - 1}</a> <a href=/p{number + 1}/>After: {number + 1}</a></div>"
        own = f"<h2 id=n>N{number}</h2><ul><li><a href=/p{number + 3}/>as in {number + 3}</a></ul><p>OWN</p>"
        return f"<div><ul>{side}</ul></div><div>{crumbs}<h1>T{number}</h1><p>OWN</p>{own}</div>{pager}"

    pages = _site(12, body)
    known = _compared(pages)
    assert {one.key for one in known} == {"above /div/ul", "after /div"}
    made = [convert(SourceText(f"{URL}/p{n}/", page, repeated=known)).markdown for n, page in enumerate(pages)]
    for number, text in enumerate(made):
        assert text.startswith(f"# T{number}\n\nword{number}a")
        assert text.rstrip().endswith("knows of its own subject")
        assert [line for line in text.split("\n") if "](" in line] == [f"- [as in {number + 3}]({URL}/p{number + 3}/)"]


async def test_pages_that_are_none(site: LocalSite, index: Themed) -> None:
    """They are left out with the reason, and leave the index if they were pages before; others of their kind stay."""
    stub = "<title>Redirecting...</title>{}<body><p>Redirecting..."
    cases = {
        "/moved": (stub.format("<meta http-equiv=refresh content='0; url=../new/'>"), f"only sends readers on to {site.url}/new/"),
        "/script": (stub.format("<script>window.location.replace('/new/')</script>"), "only sends readers on"),
        "/draft": ("<meta name=ROBOTS content='noindex, follow'><p>A draft.", "asks not to be indexed (noindex)"),
        "/genindex.html": (PAGES["/genindex.html"], "only lists all terms, with links to their pages"),
        "/py-modindex.html": ("<h1>Index of modules</h1><ul><li><a href=a#b>api and all that is in it</a></ul>", "only lists all terms, with links to their pages"),
        "/search.html": (PAGES["/search.html"], "is a search page"),
    }  # fmt: skip
    words = "This page tells how a search is made, what an index is for, and where moved pages are found. " * 3
    stays = {
        "/search/": f"<h1>Search</h1><p>{words * 6}<form></form>",
        "/all": f"<h1>All</h1><p>{words}<a href=/x>one link</a>",
        "/clock": f"<meta http-equiv=refresh content=60><h1>Clock</h1><p>{words}",
    }
    for path, page in stays.items():
        site.put(path, f"<html lang=en>{page}")
    for path in cases:
        site.put(path, f"<html lang=en><h1>Page {path}</h1><p>{path} {words}")
    site.put("/header", f"<html lang=en><h1>Header</h1><p>{words}", headers={"X-Robots-Tag": "noindex"})
    site.sitemap(*stays, *cases, "/header")
    first = await index.read()
    assert set(await index.texts()) == {*stays, *cases}
    for path, (page, _) in cases.items():
        site.put(path, f"<html lang=en>{page}")
    report = await index.read(force=True)
    assert set(await index.texts()) == set(stays)
    reasons = {page.url.removeprefix(site.url): (page.outcome, page.reason) for page in report.pages if page.reason}
    assert reasons.pop("/header") == ("skipped", "asks not to be indexed (noindex)")
    assert reasons == {path: ("removed", reason) for path, (_, reason) in cases.items()}
    assert first.counts["skipped"] == 1


async def test_a_site_that_says_noindex_on_every_page(site: LocalSite, index: Themed) -> None:
    """The error names the key that indexes it all the same, also by its links, and beside other sources."""
    words = "All that a reader of this internal page needs to know. " * 5
    forbidding = "<meta name=robots content='noindex, nofollow'>"
    for path, links in (("/in/", "<a href=a>A</a>"), ("/in/a", "")):
        site.put(path, f"<html lang=en>{forbidding}<h1>Page {path}</h1><p>{path} {words}{links}")
    site.put("/out", f"<html lang=en><h1>Out</h1><p>{words}")
    inside = site.sitemap("/in/", "/in/a", at="/in.xml")
    told = re.escape('say noindex, and none was read: set noindex = "ignore" of its source')
    with pytest.raises(NotPublished, match=rf"/in.xml: 2 of its 2 pages {told}"):
        await index.run(Source(url=inside))
    sitemap = Source(url=site.sitemap("/out", "/in/a", at="/out.xml"))
    report = await index.run(Source(url=site.sitemap("/in/", at="/in.xml")), sitemap)
    assert re.search(rf"/in.xml: 1 of its 1 pages {told}", report.failed_sources[0])
    with pytest.raises(SitemapError, match=r'1 of them say noindex: set noindex = "ignore"'):
        await index.run(Source(url=f"{site.url}/in/", follow=True))
    await index.run(sitemap)
    assert set(await index.texts()) == {"/out"}, "one page that says noindex among others is left out"
    await index.run(Source(url=f"{site.url}/in/", follow=True, noindex="ignore"))
    assert set(await index.texts()) == {"/out", "/in/", "/in/a"}
    assert Source(url=inside, noindex="ignore").reading != Source(url=inside).reading, "pages are read again"


def test_links_without_text_and_marks_are_gone() -> None:
    """Anchors of every kind: empty, with an icon, # and ¶, a word beside a heading's text; links with text stay."""
    html = """<main><h1 id=t>Title <a href=#t>#</a></h1><h2 id=a><a href=#a><svg></svg></a>One<a href="#a">Link</a></h2>
<p id=p>Text <a href=#p>¶</a><a href=/b></a> and <a href=#a>above</a>, <sup><a href=#n1>1</a></sup>.</p>
<h2 id=b><a href=#b>Two</a></h2><p><a href=/pic><img src=/a.png alt=Picture></a></p></main>"""
    assert convert(SourceText(f"{URL}/x", html)).markdown == (
        "# Title {#t}\n\n## One {#a}\n\n"
        f"Text and [above]({URL}/x#a), (1).\n\n"
        f"## Two {{#b}}\n\n[![Picture]({URL}/a.png)]({URL}/pic)\n"
    )


def test_controls_are_no_text_whatever_their_theme() -> None:
    """Menus, toolbars and dialogs by their ARIA roles, unless the source keeps them; Hextra has a menu beside the title."""
    roles = ("menu", "menubar", "toolbar", "dialog", "alertdialog", "navigation", "search")
    controls = "".join(f"<ul role={role}><li><a href=https://ai.example/>Open {role}</a></ul>" for role in roles)
    source = SourceText(f"{URL}/x", f"<main><div><h1>Title</h1>{controls}</div><p>Text.</p></main>")
    assert convert(source).markdown == "# Title\n\nText.\n"
    assert "Open menu" in convert(replace(source, keep_selectors=("[role=menu]",))).markdown


def test_links_without_text_into_a_page_of_raw_markdown_are_gone() -> None:
    """In a heading they are its anchor; code, pictures and links with text stay, and so do links to other pages."""
    raw = """# Title [](#t)\n\n## One [\u200b](#one)\n\nText [](#x)and [above](#one), `[](#x)`, [](/other#x) ![](#pic).
## Two {#own} [](#two)\n\n[](#two)\n\n```\n[](#x)\n```\n"""
    assert convert(SourceText(f"{URL}/x", raw, "text/markdown")).markdown.strip() == (
        "# Title {#t}\n\n## One {#one}\n\n"
        f"Text and [above]({URL}/x#one), `[](#x)`, []({URL}/other#x) ![]({URL}/x#pic).\n## Two {{#own}}\n\n```\n[](#x)\n```"
    )


def test_all_articles_of_the_main_region_are_read() -> None:
    """Also where the first is the shortest, and nothing of what is around them."""
    articles = "".join(f"<article><h2 id=a{n}>Part {n}</h2><p>Text of part {n}.</p></article>" for n in range(3))
    for main in ("main", "div role=main"):
        made = convert(
            SourceText(URL, f"<body><{main}><h1>Whole</h1><p>Menu</p><div>{articles}</div></{main[:4].strip()}>")
        )
        assert [line for line in made.markdown.split("\n") if line.startswith("Text")] == [
            f"Text of part {n}." for n in range(3)
        ]
        assert "Menu" not in made.markdown
