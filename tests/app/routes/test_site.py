"""The documentation site: built pages, raw Markdown, sitemap, and what is shown before it is built."""

import sys
from pathlib import Path

import lxml.html
import pytest
from fastapi import FastAPI
from lxml import etree
from markdown_it import MarkdownIt

from app.routes.html_pages import Site, find_docs
from app.routes.routers import include
from tests.app.routes.scripted import client_of

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs").glob("[a-z][a-z]/*.md"))
MARKDOWN = MarkdownIt("commonmark").enable("table")
STRUCTURE = ("h2", "h3", "li", "tr", "pre")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The site as every installation builds it; a broken link or anchor would fail the build."""
    sys.path.insert(0, str(ROOT))
    from hatch_build import build_site

    folder = tmp_path_factory.mktemp("site")
    build_site(ROOT / "docs", folder)
    return folder


def client(built: Path, docs: Path = ROOT / "docs"):
    app = FastAPI(docs_url=None)
    include(app, [Site(docs, default_language="en", built=built).router()])
    return client_of(app)


def path_of(page: Path) -> str:
    return f"{page.parent.name}/{'' if page.stem == 'index' else page.stem}"


async def test_every_page_is_served_with_the_structure_of_its_markdown_and_every_anchor(built):
    """Sections, lists, tables and examples are those that the index sees too; links lead to our own host only."""
    assert len(PAGES) > 40
    async with client(built) as site:
        for page in PAGES:
            response = await site.get(f"/docs/{path_of(page)}")
            assert response.headers["content-type"] == "text/html; charset=utf-8"
            assert "default-src 'self'" in response.headers["content-security-policy"]
            tree = lxml.html.fromstring(response.text)
            source = lxml.html.fromstring(f"<div>{MARKDOWN.render(page.read_text('utf-8').split('---', 2)[2])}</div>")
            (article,) = tree.xpath("//article")
            counted = {tag: (len(source.xpath(f"//{tag}")), len(article.xpath(f".//{tag}"))) for tag in STRUCTURE}
            assert {tag for tag, (expected, shown) in counted.items() if expected != shown} == set(), page
            headings = source.xpath("//h2/text() | //h3/text()")
            anchors = {text.rpartition("{#")[2][:-1] for text in headings if "{#" in text}
            assert anchors
            assert anchors <= set(article.xpath(".//@id")), page
            assert tree.get("lang") == page.parent.name
            name = path_of(page).partition("/")[2]
            assert tree.xpath("//link[@hreflang]/@href") == [f"../{code}/{name}" for code in ("cs", "en")]


async def test_the_markdown_is_beside_each_page_and_for_clients_that_like_it_better(built):
    async with client(built) as site:
        text = (ROOT / "docs/en/start.md").read_bytes()
        assert (await site.get("/docs/en/start.md")).content == text
        for accept, markdown in (
            ("text/markdown, text/html;q=0.8, */*;q=0.1", True),
            ("text/html,application/xhtml+xml,*/*;q=0.8", False),
            ("text/html, text/markdown;q=0.5", False),
            ("text/markdown;q=0", False),
        ):
            response = await site.get("/docs/en/start", headers={"accept": accept})
            assert (response.content == text) is markdown, accept
            assert response.headers["vary"] == "Accept"
            known = {"accept": accept, "if-none-match": response.headers["etag"]}
            assert (await site.get("/docs/en/start", headers=known)).status_code == 304


async def test_the_sitemap_lists_every_page_with_date_and_counterparts_as_the_client_sees_the_service(built):
    names = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "x": "http://www.w3.org/1999/xhtml"}
    async with client(built) as site:
        bases = {"docs.example.org:8443": "http://docs.example.org:8443", 'x"><script>': "http://localhost"}
        for host, base in bases.items():
            response = await site.get("/docs/sitemap.xml", headers={"host": host})
            urls = etree.fromstring(response.content).findall("s:url", names)
            listed = {url.findtext("s:loc", namespaces=names): url for url in urls}
            assert set(listed) == {f"{base}/docs/{path_of(page)}" for page in PAGES}
            start = listed[f"{base}/docs/cs/start"]
            counterparts = {link.get("hreflang"): link.get("href") for link in start.findall("x:link", names)}
            assert counterparts == {code: f"{base}/docs/{code}/start" for code in ("cs", "en")}
            assert all(url.findtext("s:lastmod", namespaces=names) for url in urls)


async def test_other_ways_in_lead_to_the_page_and_nothing_outside_is_served(built):
    async with client(built) as site:
        for path, accepted, location in (
            ("/docs", "", "docs/"),
            ("/docs/", "", "en/"),
            ("/docs/", "cs-CZ,cs;q=0.9,en;q=0.8", "cs/"),
            ("/docs/", "cs;q=0", "en/"),
            ("/docs/en/index", "", "./"),
            ("/docs/en/start.html?h=word", "", "./start?h=word"),
            ("/docs/en/start/", "", "../start"),
            ("/docs/en/index/", "", "../"),
        ):
            response = await site.get(path, headers={"accept-language": accepted})
            assert response.status_code in (307, 308), path
            assert response.headers["location"] == location
        for path in ("/docs/en/none", "/docs/xx/none", "/docs/en/..%2f..%2fpyproject.toml", "/docs/en/site.toml"):
            response = await site.get(path, headers={"accept-language": "cs"})
            assert response.status_code == 404, path
            tree = lxml.html.fromstring(response.text)
            assert tree.xpath("//a/@href") == [f"/docs/{tree.get('lang')}/"]
            assert tree.get("lang") == ("cs" if "/xx/" in path else "en")


async def test_a_name_that_no_file_system_takes_is_a_missing_page(built):
    async with client(built) as site:
        long = "en/" + "a" * 300
        for path in (long, f"{long}.md", "en/" + "%C4%8D" * 200, "a/" * 90, "en/%00", "x" * 250):
            assert (await site.get(f"/docs/{path}")).status_code == 404, path


async def test_before_the_site_is_built_its_pages_are_markdown_and_the_home_says_what_to_do(tmp_path):
    async with client(tmp_path / "none", find_docs()) as site:
        home = (await site.get("/docs/")).text
        assert "make docs" in home
        assert "http://localhost/docs/cs/start\n" in home
        response = await site.get("/docs/cs/start")
        assert response.headers["content-type"] == "text/markdown; charset=utf-8"
        assert (await site.get("/docs/cs/none")).status_code == 404
