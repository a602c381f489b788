"""The documentation site: pages, raw Markdown, sitemap, and what a polite client needs."""

import os
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import unquote

import pytest
from lxml import etree, html

from app.api.server import create_app
from app.api.sitepages import render, slug
from app.core.settings import Settings
from tests.app.api.scripted import Scripted, ScriptedAssistants, client_of

HOME_EN = "---\ntitle: Our docs\ndescription: All of it & more\n---\n\nWelcome. See [settings](settings.md#keys).\n"
HOME_CS = "---\ntitle: Naše dokumentace\n---\n\nVítejte. Viz [nastavení](settings.md) a [English](../en/index.md).\n"
SETTINGS_EN = "---\ntitle: Settings\norder: 1\n---\n# Settings\n\n## Keys\n\n| a | b |\n|---|---|\n| `<x>` | 2 |\n"
SETTINGS_CS = "---\ntitle: Nastavení\norder: 1\n---\n# Nastavení\n\n## Klíče {#keys}\n"
ONLY_EN = "---\ntitle: About\n---\n\nText.\n"
MODIFIED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    files = {
        "en/index.md": HOME_EN,
        "cs/index.md": HOME_CS,
        "en/settings.md": SETTINGS_EN,
        "cs/settings.md": SETTINGS_CS,
        "en/about.md": ONLY_EN,
        "en/.hidden.md": "secret",
        "en/notes.txt": "secret",
        "secret.md": "secret",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (MODIFIED.timestamp(), MODIFIED.timestamp()))
    (tmp_path / "outside.md").write_text("secret")
    return folder


@pytest.fixture
async def client(docs):
    async with client_of(
        create_app(ScriptedAssistants((Scripted(),)), Settings.load(None, allowed_hosts="*"), docs=docs)
    ) as client:
        yield client


async def page(client, path, **headers):
    response = await client.get(path, headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    return html.fromstring(response.text)


async def test_a_page_tells_its_language_title_address_and_counterparts(client):
    tree = await page(client, "/docs/cs/settings")
    assert tree.get("lang") == "cs"
    assert tree.findtext(".//title") == "Nastavení · Naše dokumentace"
    assert tree.xpath("//link[@rel='canonical']/@href") == ["http://localhost/docs/cs/settings"]
    alternates = {e.get("hreflang"): e.get("href") for e in tree.xpath("//link[@rel='alternate'][@hreflang]")}
    assert alternates == {"cs": "http://localhost/docs/cs/settings", "en": "http://localhost/docs/en/settings"}
    assert tree.xpath("//link[@type='text/markdown']/@href") == ["http://localhost/docs/cs/settings.md"]


async def test_a_page_without_counterpart_has_no_alternates_and_switches_to_the_other_home(client):
    tree = await page(client, "/docs/en/about")
    assert not tree.xpath("//link[@hreflang]")
    tree.make_links_absolute("http://localhost/docs/en/about")
    assert tree.xpath("//nav[@class='languages']/a/@href") == [
        "http://localhost/docs/cs/",
        "http://localhost/docs/en/about",
    ]


async def test_the_navigation_lists_the_pages_of_the_language_home_first(client):
    tree = await page(client, "/docs/en/settings")
    tree.make_links_absolute("http://localhost/docs/en/settings")
    entries = [(a.text, a.get("href"), a.get("aria-current")) for a in tree.xpath("//nav[@class='pages']//a")]
    assert entries == [
        ("Our docs", "http://localhost/docs/en/", None),
        ("Settings", "http://localhost/docs/en/settings", "page"),
        ("About", "http://localhost/docs/en/about", None),
    ]


async def test_a_page_that_isnt_listed_is_in_the_navigation_of_its_own_only():
    """The shipped steps: the page that they belong to leads there."""
    async with client_of(create_app(ScriptedAssistants((Scripted(),)), Settings.load(None))) as shipped:
        for own, listed in (("step-hyde", {"step-hyde"}), ("settings", set())):
            tree = await page(shipped, f"/docs/en/{own}")
            entries = {href.rpartition("/")[2] for href in tree.xpath("//nav[@class='pages']//a/@href")}
            assert {entry for entry in entries if entry.startswith("step-")} == listed
        assert "/docs/en/step-hyde</loc>" in (await shipped.get("/docs/sitemap.xml")).text


async def test_every_link_of_the_site_leads_somewhere(client):
    seen, todo = set(), ["http://localhost/docs/en/", "http://localhost/docs/cs/", "http://localhost/docs/xx/none"]
    while todo:
        url = todo.pop()
        seen.add(url)
        response = await client.get(url)
        assert response.status_code == (404 if "none" in url else 200), url
        if "html" not in response.headers["content-type"]:
            continue
        tree = html.fromstring(response.text)
        for anchor in [a.get("href")[1:] for a in tree.xpath("//a[starts-with(@href, '#')]")]:
            assert tree.get_element_by_id(anchor) is not None
        tree.make_links_absolute(url)
        links = {link.partition("#")[0] for _, _, link, _ in tree.iterlinks() if link.startswith("http")}
        todo += links - seen - set(todo)
    assert len(seen) == 12


async def test_every_link_of_the_shipped_documentation_leads_to_a_page_and_a_section():
    """The documentation in this repository, all languages: no page is missing, no anchor either."""
    found: dict[str, html.HtmlElement] = {}
    links: set[tuple[str, str]] = set()
    async with client_of(create_app(ScriptedAssistants((Scripted(),)), Settings.load(None))) as client:
        locations = etree.fromstring((await client.get("/docs/sitemap.xml")).content).xpath(
            "//*[local-name()='loc']/text()"
        )
        assert locations
        for url in locations:
            found[url] = html.fromstring((await client.get(url)).text)
            found[url].make_links_absolute(url)
            links |= {
                (url, link) for link in found[url].xpath("//article//a/@href") if link.startswith("http://localhost")
            }
        for source, link in links:
            url, _, anchor = link.partition("#")
            assert url in found or (await client.get(url)).status_code < 400, f"{source} links to {link}"
            if anchor:
                assert found[url].xpath("//*[@id=$anchor]", anchor=unquote(anchor)), f"{source} links to {link}"


async def test_markdown_becomes_html_and_markup_in_it_stays_text(client):
    tree = await page(client, "/docs/en/settings")
    assert tree.xpath("//article//h2/@id") == ["keys"]
    assert tree.xpath("//article//td/code/text()") == ["<x>"]
    assert [h.text for h in tree.xpath("//h1")] == ["Settings"]


async def test_a_page_without_a_first_heading_shows_its_title(client):
    assert [h.text for h in (await page(client, "/docs/en/about")).xpath("//h1")] == ["About"]


async def test_a_description_is_told(client):
    assert (await page(client, "/docs/en/")).xpath("//meta[@name='description']/@content") == ["All of it & more"]


@pytest.mark.parametrize(
    ("path", "text"),
    [("/docs/en/settings.md", SETTINGS_EN), ("/docs/cs/index.md", HOME_CS), ("/docs/en/about.md", ONLY_EN)],
)
async def test_the_raw_markdown_is_beside_the_page(client, path, text):
    response = await client.get(path)
    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.content == text.encode()


@pytest.mark.parametrize(
    ("accept", "markdown"),
    [
        ("text/markdown", True),
        ("text/markdown, text/html;q=0.9, */*;q=0.1", True),
        ("text/html, text/markdown;q=0.5", False),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
        ("*/*", False),
        ("text/markdown;q=0", False),
        ("text/markdown;q=x", False),
        ("", False),
    ],
)
async def test_a_client_that_likes_markdown_better_gets_it(client, accept, markdown):
    response = await client.get("/docs/en/settings", headers={"accept": accept})
    assert response.headers["content-type"].startswith("text/markdown" if markdown else "text/html")
    assert response.headers["vary"] == "Accept"
    assert response.headers.get("content-location") == ("settings.md" if markdown else None)


PATHS = ["/docs/en/", "/docs/en/settings", "/docs/en/settings.md", "/docs/sitemap.xml", "/docs/style.css"]


@pytest.mark.parametrize("path", PATHS)
async def test_what_a_client_has_is_not_sent_again(client, path):
    first = await client.get(path)
    tag, modified = first.headers["etag"], first.headers["last-modified"]
    for headers in (
        {"if-none-match": tag},
        {"if-none-match": f'"x", W/{tag}'},
        {"if-none-match": "*"},
        {"if-modified-since": modified},
        {"if-none-match": tag, "if-modified-since": "Mon, 01 Jan 2001 00:00:00 GMT"},
    ):
        again = await client.get(path, headers=headers)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    for headers in (
        {"if-none-match": '"x"'},
        {"if-none-match": '"x"', "if-modified-since": modified},
        {"if-modified-since": "Mon, 01 Jan 2001 00:00:00 GMT"},
        {"if-modified-since": "yesterday"},
    ):
        assert (await client.get(path, headers=headers)).status_code == 200


async def test_the_date_of_a_page_is_that_of_its_file(client):
    assert (await client.get("/docs/en/about")).headers["last-modified"] == format_datetime(MODIFIED, usegmt=True)


@pytest.mark.parametrize("path", PATHS)
async def test_head_answers_as_get(client, path):
    got, head = await client.get(path), await client.head(path)
    assert head.status_code == 200
    assert {k: v for k, v in head.headers.items() if k != "x-request-id"} == {
        k: v for k, v in got.headers.items() if k != "x-request-id"
    }


async def test_the_sitemap_lists_every_page_with_date_and_counterparts(client):
    response = await client.get("/docs/sitemap.xml")
    assert response.headers["content-type"].startswith("application/xml")
    names = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "x": "http://www.w3.org/1999/xhtml"}
    urls = etree.fromstring(response.content).findall("s:url", names)
    listed = {
        url.findtext("s:loc", namespaces=names): {
            e.get("hreflang"): e.get("href") for e in url.findall("x:link", names)
        }
        for url in urls
    }
    base = "http://localhost/docs/"
    home, settings = ({code: f"{base}{code}/{name}" for code in ("cs", "en")} for name in ("", "settings"))
    assert listed == {
        f"{base}cs/": home,
        f"{base}en/": home,
        f"{base}cs/settings": settings,
        f"{base}en/settings": settings,
        f"{base}en/about": {},
    }
    assert {url.findtext("s:lastmod", namespaces=names) for url in urls} == {"2026-03-04T05:06:07+00:00"}


async def test_addresses_are_as_the_client_sees_the_service(client):
    response = await client.get("/docs/sitemap.xml", headers={"host": "docs.example.org:8443"})
    assert "<loc>http://docs.example.org:8443/docs/en/</loc>" in response.text


@pytest.mark.parametrize("host", ['x"><script>', "a b", "[", "x/y", ""])
async def test_a_made_up_host_is_not_repeated(client, host):
    for path in ("/docs/en/", "/docs/sitemap.xml"):
        response = await client.get(path, headers={"host": host})
        assert response.status_code == 200
        assert "http://localhost/docs/en/" in response.text
        assert "<script>" not in response.text


@pytest.mark.parametrize(
    ("path", "accepted", "location"),
    [
        ("/docs", "", "docs/"),
        ("/docs/", "", "en/"),
        ("/docs/", "cs-CZ,cs;q=0.9,en;q=0.8", "cs/"),
        ("/docs/", "de, en;q=0.2, cs;q=0.1", "en/"),
        ("/docs/", "cs;q=0", "en/"),
        ("/docs/", "de", "en/"),
        ("/docs/cs", "", "cs/"),
        ("/docs/en/index", "", "./"),
        ("/docs/en/settings/", "", "../settings"),
    ],
)
async def test_other_ways_in_lead_to_the_page(client, path, accepted, location):
    response = await client.get(path, headers={"accept-language": accepted})
    assert response.status_code in (307, 308)
    assert response.headers["location"] == location


@pytest.mark.parametrize(
    "path",
    [
        "/docs/en/..%2Fsecret",
        "/docs/en/..%2f..%2foutside.md",
        "/docs/..%2Foutside.md",
        "/docs/en/%2e%2e/%2e%2e/outside.md",
        "/docs/en/.hidden",
        "/docs/en/.hidden.md",
        "/docs/en/.md",
        "/docs/en/notes.txt",
        "/docs/secret.md",
        "/docs/en//settings",
        "/docs/en/settings%00",
        "/docs/fr/",
        "/docs/en/none",
    ],
)
async def test_what_is_no_page_is_a_404_that_shows_the_way(client, path):
    response = await client.get(path)
    assert response.status_code == 404
    assert "secret" not in response.text
    assert html.fromstring(response.text).xpath("//nav[@class='pages']//a/@href")


async def test_a_404_is_in_the_readers_language(client):
    for path, accepted in (("/docs/cs/none", "en"), ("/docs/none", "cs")):
        response = await client.get(path, headers={"accept-language": accepted})
        assert html.fromstring(response.text).get("lang") == "cs"


async def test_changes_show_at_once(client, docs):
    before = await client.get("/docs/en/about")
    (docs / "en/about.md").write_text("---\ntitle: About us\n---\n\nNew.\n")
    (docs / "en/fresh.md").write_text("# Fresh\n")
    (docs / "cs/settings.md").unlink()
    after = await client.get("/docs/en/about")
    assert "New." in after.text
    assert after.headers["etag"] != before.headers["etag"]
    assert "Fresh" in after.text
    assert (await client.get("/docs/cs/settings")).status_code == 404


async def test_broken_front_matter_spoils_no_other_page(client, docs):
    (docs / "en/broken.md").write_text("---\ntitle: [\n---\nText.\n")
    assert (await client.get("/docs/en/about")).status_code == 200
    assert (await client.get("/docs/en/broken")).status_code == 200


async def test_a_service_without_documentation_still_answers(tmp_path):
    app = create_app(ScriptedAssistants((Scripted(),)), Settings.load(None), docs=tmp_path / "none")
    async with client_of(app) as client:
        assert (await client.get("/docs/")).status_code == 404
        assert "<urlset" in (await client.get("/docs/sitemap.xml")).text


async def test_a_page_loads_nothing_from_elsewhere_and_runs_no_script(client):
    response = await client.get("/docs/en/settings")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert "<script" not in response.text
    assert "http" not in response.text.replace("http://localhost", "")


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Getting started", "getting-started"),
        ("What's `DOCS_URL`?", "whats-docs_url"),
        ("Výchozí nastavení", "výchozí-nastavení"),
        ("A & B -- C", "a--b----c"),
        ("!?", "section"),
    ],
)
def test_slugs_follow_githubs_rule(heading, anchor):
    assert slug(heading.replace("`", "")) == anchor
    assert f'id="{anchor}"' in render(f"## {heading}\n")[0]


def test_repeated_headings_are_told_apart():
    made = html.fromstring("<div>" + render("## A\n## A\n## A-1\n## A\n## B {#a}\n")[0] + "</div>").xpath("//h2/@id")
    assert made == ["a", "a-1", "a-1-1", "a-2", "a-3"]


@pytest.mark.parametrize(
    ("target", "href"),
    [
        ("other.md", "other"),
        ("other.md#part", "other#part"),
        ("../cs/other.md", "../cs/other"),
        ("index.md", "./"),
        ("index.md#part", "./#part"),
        ("../cs/index.md", "../cs/"),
        ("https://example.org/x.md", "https://example.org/x.md"),
        ("/x.md", "/x.md"),
        ("#part", "#part"),
        ("picture.png", "picture.png"),
    ],
)
def test_links_between_files_become_links_between_pages(target, href):
    assert f'href="{href}"' in render(f"[x]({target})")[0]
