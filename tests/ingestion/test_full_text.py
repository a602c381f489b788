"""An llms-full.txt as a source: its pages have their own addresses, whatever generator wrote the file.

`full_text/` holds what generators wrote of one small site, with their plugins for these files.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.core.errors import SitemapError
from app.core.language import vocabulary
from app.core.settings import Settings
from app.text.fences import blocks
from ingestion.convert.raw_markdown import converted
from ingestion.crawl import full_text
from ingestion.crawl.documents import read_document
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.full_text_parse import Known, parse_full_text
from ingestion.entry import Listing
from ingestion.sources import Source
from ingestion.urls import stem
from tests.ingestion.local_site import LocalSite, list_sources
from tests.ingestion.test_run import Index, index, outcomes

__all__ = ["index"]
SAVED = Path(__file__).parent / "full_text"
HOST = "https://docs.example.org"
WORDS = "Some words about the storage of the cluster, which are long enough to be a page of their own. "


def put(site: LocalSite, generator: str) -> str:
    """Serve what a generator wrote, as if it were built for this site; the address of the file."""
    for file in (SAVED / generator).iterdir():
        kind = "application/xml" if file.suffix == ".xml" else "text/plain"
        site.put(f"/{file.name}", file.read_text().replace(HOST, site.url), kind)
    return f"{site.url}/llms-full.txt"


async def listed(*sources: Source) -> Listing:
    async with Fetcher(Settings.load(None), retry_wait=0.01) as fetcher:
        return await list_sources(sources, fetcher)


GENERATORS = {
    "vitepress": ("/guide/install", "/guide/storage", "/reference/", "/reference/config"),
    "docusaurus": (
        "/docs/guide/install",
        "/docs/guide/storage",
        "/docs/",
        "/docs/reference/config",
        "/docs/reference/",
    ),
    "mkdocs": ("/guide/install/", "/guide/storage/", "/", "/reference/", "/reference/config/"),
    "llms_txt2ctx": ("/guide/install/", "/guide/storage/", "/", "/reference/", "/reference/config/"),
    "sphinx": ("/index.html", "/guide/install.html", "/guide/storage.html"),
    "starlight": ("/llms-full.txt",),
}


async def test_each_page_of_a_generators_file_has_its_own_address(site: LocalSite) -> None:
    """No link leads to a page that isn't there, and code with marks of pages in it stays whole."""
    for generator, paths in GENERATORS.items():
        site.answers.clear()
        found = await listed(Source(url=put(site, generator)))
        assert tuple(entry.address.removeprefix(site.url) for entry in found.entries) == paths, generator
        assert found.skipped == ()
        assert bool(found.notes) == (generator == "starlight")
        documents = [converted(read_document(one, "", 10**6), one, vocabulary()) for one in found.entries]
        pages = {stem(site.url + path) for path in paths} | {stem(site.url)}
        text = "\n".join(document.markdown for document in documents)
        links = {link.partition("#")[0] for link in re.findall(r"\]\(([^\s()]+)", text)}
        if generator != "starlight":  # nobody knows the addresses of its pages
            assert {link for link in links if stem(link) not in pages} == set(), generator
        code = [piece for is_code, piece in blocks(text) if is_code]
        if generator != "sphinx":
            assert any("---\nurl: /not/a/page.md\n---\n```" in piece for piece in code), generator
            assert any("url: /in/a/fence.md" in piece for piece in code), generator
            assert "| kubectl | `1.30` | talks to the cluster |" in text, generator
        assert "Section titled" not in text


FORMS = {
    "Mintlify": "# A\nSource: {u}/a\n\nText.\n\n# Part of A\n\nSource: the list.\n\n\n# B\nSource: {u}/b\n\nText.\n",
    "fumadocs": "# A (/a)\n\nText.\n\n# Part (of A)\n\nText.\n\n# B (/b)\n\nText.\n",
    "fumadocs before": "# A\nURL: /a\nSource: https://raw.example.com/a.mdx\n\nText.\n\n# B\nURL: /b\n\nText.\n",
    "Cloudflare": "<page>\n---\ntitle: A\nsource_url:\n  html: x\nurl: {u}/a/\n---\n\n# A\n\nText.\n</page>\n\n<page>\n---\ntitle: B\nurl: {u}/b/\n---\n\nText.\n\n---\n\nMore.\n</page>\n",
    "Next.js": '# Site\n\n> About it.\n\n---\ntitle: A\nurl: "{u}/a"\n---\n\nText.\n\n---\n\nNote: no page.\n\n---\ntitle: B\nurl: "{u}/b"\ntags:\n  - x\n---\n\nText.\n',
    "Vercel": '{d}\ntitle: "A"\nsource: "{u}/a"\n{d}\n\n# A\n\nText.\n\n{d}\ntitle: "B"\nsource: "{u}/b"\n{d}\n\n# B\n\nText.\n',
    "tags": '<doc title="A" url="{u}/a">\nText.\n</doc>\n<doc title="B" url="/b.md">\nText.\n</doc>',
    "pages": '<SYSTEM>All of it.</SYSTEM>\n\n<page url="{u}/a" title="A">\nText.\n</page>\n<page url="{u}/b" title="B">\nText.\n</page>\n',
    "Drizzle": "# Site\n\nSource: {u}/a\n\n# A\n\nText.\n\nSource: https://other.example.com/x\n\nSource: {u}/b\n\n# B\n\nText.\n",
    "addresses": "# Site\n\n## {u}/a\n\n# A\n\nText.\n\n---\n\n## {u}/b\n\n# B\n\nText.\n",
    "second level": "# Site\n\n## A ({u}/a)\n\nText.\n\n## B ({u}/b)\n\nText.\n",
    "comments": "<!-- Source: {u}/a -->\n\n# A\n\nText.\n\n<!-- Source: {u}/b -->\n\n# B\n\nText.\n",
    "titles": "# Site\n\n> About it.\n\n# A\n\nText.\n\n# B\n\nText.\n",
    "titles below": "# Site\n\n> About it.\n\n## A\n\n### Part\n\nText.\n\n---\n\n## B\n\nText.\n",
}


def test_forms_of_such_files() -> None:
    """Each way to say where a page begins; what else looks so in a page is text."""
    index_ = f"# Site\n\n> About it.\n\n## Docs\n\n- [A]({HOST}/a.md): about A\n- [B]({HOST}/b.md)\n"
    for form, written in FORMS.items():
        known = Known(index_ if form.startswith("titles") else "")
        text = written.format(u=HOST, d="-" * 80)
        found = parse_full_text(text, f"{HOST}/llms-full.txt", (), known)
        assert [stem(one.address) for one in found.sections] == [f"{HOST}/a", f"{HOST}/b"], form
        assert found.whole, form
        for section in found.sections:
            assert section.text.endswith(("Text.", "More.", "no page.", "the list.", "/x")), form
            assert not re.search(
                r"(?m)^(?:URL|Source): (?!the list|https://(?:raw|other))|^</?page|^</?doc", section.text
            ), form
    assert found.sections[0].text == "# A\n\n## Part\n\nText."


def test_a_file_without_an_end_is_told() -> None:
    """Its last page may be cut off, so it is left as it was."""
    for text in (
        '<doc title="A" url="/a">\nText.\n</doc>\n<doc title="B" url="/b">\nHalf a te',
        "# A\nURL: /a\n\nText.\n\n# B\nURL: /b\n\n```sh\necho half",
    ):
        found = parse_full_text(text, f"{HOST}/llms-full.txt", (), Known())
        assert not found.whole
        assert [one.address for one in found.sections] == [f"{HOST}/a"]


def full(*names: str, more: str = "") -> str:
    return "\n\n".join(
        f"# {name}\nSource: {{site}}/{name}\n\n## Use of {name}\n\n{name} {WORDS * 3}{more}" for name in names
    )


async def test_what_changes_in_the_file_is_embedded_and_nothing_else(site: LocalSite, index: Index) -> None:
    """A page that is no longer in it leaves the index, unless the end of the file is missing."""
    url = f"{site.url}/llms-full.txt"
    site.put("/llms-full.txt", full("a", "b", "c"), "text/plain")
    for name in "ab":
        site.put(f"/{name}", f"<main><h1>{name}</h1><h2 id=use-of-{name}>Use of {name}</h2><h2 id=x-y>X y</h2></main>")
    assert set(outcomes(await index.run(url)).values()) == {"new"}
    live = await index.store.live()
    page = await live.page(f"{site.url}/a")
    assert page is not None
    assert page.title == "a"
    unchanged = await index.run(url)
    assert (set(outcomes(unchanged).values()), unchanged.embedded_texts) == ({"unchanged"}, 0)
    site.put("/llms-full.txt", full("a") + "\n\n" + full("b", more="Changed.") + "\n\n```\nhalf", "text/plain")
    cut = await index.run(url)
    assert outcomes(cut) == {"/a": "unchanged", "/llms-full.txt": "skipped"}
    assert set(await index.pages()) == {"/a", "/b", "/c"}
    site.put("/llms-full.txt", full("a") + "\n\n" + full("b", more="Changed."), "text/plain")
    changed = await index.run(url)
    assert outcomes(changed) == {"/a": "unchanged", "/b": "changed", "/c": "removed"}
    assert changed.embedded_texts == 1


async def test_a_page_that_is_listed_too_is_read_from_its_own_address(site: LocalSite) -> None:
    """In whatever order the sources are, and however both write the address."""
    site.put("/llms-full.txt", full("a", "b"), "text/plain")
    file, pages = Source(url=f"{site.url}/llms-full.txt"), Source(url=site.sitemap("/a.html", at="/pages.xml"))
    for sources in ((file, pages), (pages, file)):
        found = await listed(*sources)
        assert {entry.url for entry in found.entries} == {f"{site.url}/a.html", f"{site.url}/b"}
        assert [skip.reason for skip in found.skipped] == [f"in {file.url} is the same page as {site.url}/a.html"]


async def test_files_that_give_no_page_are_errors(site: LocalSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTML instead of text, other hosts, no text at all, and more than 50 MB; the message says what to do."""
    assert full_text.MAX_BYTES == 50 << 20
    monkeypatch.setattr(full_text, "MAX_BYTES", 1 << 20)
    for body, more, told in (
        ("<!doctype html><html></html>", {}, "is an HTML page"),
        ("# A\nSource: https://other.example.com/a\n\nText.\n", {}, "`hosts` of the source adds some"),
        ("nothing", {}, "no page was found in it"),
        ("# A\n\nText.\n" * 1000, {"endless": True}, "is larger than 1,048,576 bytes"),
    ):
        site.put("/llms-full.txt", body, "text/plain", **more)
        with pytest.raises(SitemapError, match=re.escape(told)):
            await listed(Source(url=f"{site.url}/llms-full.txt"))
