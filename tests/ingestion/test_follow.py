"""A site without a sitemap is read by following its links, politely and within limits, and each page is fetched once."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.errors import SitemapError
from ingestion.crawl.fetch import Fetcher
from ingestion.report import Report
from ingestion.sources import Source
from tests.ingestion.index import Index, reasons
from tests.ingestion.local_site import Answer, LocalSite, list_sources

WORDS = "Some words about the thing that this page explains, and how to use it."


def linking(site: LocalSite, path: str, *links: str, head: str = "", **more: object) -> None:
    """Put a page with these links in its menu."""
    menu = "".join(link if link.startswith("<") else f'<a href="{link}">x</a>' for link in links)
    site.put(
        path,
        f"<html lang=en><head><title>Page {path}</title>{head}</head><body><nav>{menu}</nav>"
        f"<main><h1>Page {path}</h1><p>{WORDS} It is {path}.</p></main></body></html>",
        **more,
    )


class Followed(Index):
    """An index of what the site's links lead to."""

    async def read(self, *, dry_run: bool = False, **source: object) -> Report:
        """A run over the site; its log starts anew."""
        self.site.log.clear()
        return await self.run(Source(url=f"{self.site.url}/docs/", **source), dry_run=dry_run, force=True)

    def asked(self) -> Counter[str]:
        """How often each page of the site was requested, without probes for Markdown."""
        return Counter(
            path
            for path, _, _ in self.site.log
            if path.startswith("/docs/") and not path.endswith((".md", ".mdx", ".xml"))
        )


@pytest.fixture
async def index(site: LocalSite, tmp_path: Path) -> AsyncIterator[Followed]:
    """No index yet, of a site of six pages below /docs/, of which two forbid something."""
    linking(site, "/docs/", "a", "b/", "/blog/", "https://elsewhere.example/docs/", "#top", "?sort=1", "logo.png")
    secret = '<a rel="nofollow" href="secret">x</a>'
    linking(site, "/docs/a", "/docs/", "b/c#part", secret, "private/x", "old", "_sources/a.rst.txt")
    linking(site, "/docs/b/", "c", "index.html", "noindex", "nofollow", "missing", "d/d/d")
    linking(site, "/docs/b/index.html", head='<link rel="canonical" href="/docs/b/">')
    linking(site, "/docs/b/c")
    linking(site, "/docs/b/noindex", "behind", head='<meta name="robots" content="noindex">')
    linking(site, "/docs/b/behind")
    linking(site, "/docs/b/nofollow", "unseen", headers={"X-Robots-Tag": "nofollow"})
    site.put("/docs/old", "", status=301, headers={"Location": "/docs/new"})
    linking(site, "/docs/new")
    site.put("/robots.txt", "User-agent: *\nDisallow: /docs/private/\n", "text/plain")
    async with Followed(tmp_path / "data", site) as made:
        yield made


READ = {"/docs/", "/docs/a", "/docs/b/", "/docs/b/c", "/docs/b/behind", "/docs/b/nofollow", "/docs/new"}


async def test_links_below_the_start_are_followed_and_each_page_is_fetched_once(index: Followed) -> None:
    """robots.txt, nofollow, noindex, canonical addresses and queries are respected, and the report says what was left out."""
    dry = await index.read(dry_run=True)
    assert {page.url.removeprefix(index.site.url) for page in dry.pages if page.read} == READ
    assert "Dry run" in dry.text
    report = await index.read()
    assert set(await index.pages()) == READ, report.text
    assert max(index.asked().values()) == 1, index.asked()
    asked = {path for path, _, _ in index.site.log}
    assert asked.isdisjoint({"/docs/private/x", "/docs/secret", "/docs/b/unseen", "/blog/", "/docs/logo.png"})
    left = reasons(report)
    assert left["/docs/private/x"] == "robots.txt forbids it"
    assert left["/docs/b/noindex"] == "asks not to be indexed (noindex)"
    assert left["/docs/?sort=1"] == "has a query"
    assert left["/docs/_sources/a.rst.txt"] == "is the source of a page"
    assert left["/docs/b/index.html"].startswith("is the same page as")
    assert "repeats" in left["/docs/b/d/d/d"]
    assert f"{index.site.url}/docs/: links were followed instead of a sitemap" in report.text


async def test_frames_are_pages_of_the_site(index: Followed) -> None:
    """Of a start page that is only a frameset, also with what readers without frames get."""
    index.site.put(
        "/docs/", "<html><frameset cols='20%,80%'><frame src=a><frame src=b/c><noframes>x</noframes></frameset></html>"
    )
    await index.read()
    assert {"/docs/a", "/docs/b/c"} <= set(await index.pages())


async def test_the_next_run_asks_conditionally_and_finds_what_is_new_gone_or_was_broken(index: Followed) -> None:
    """Unchanged pages lead to what they led to before; a run without a change writes nothing."""
    linking(index.site, "/docs/b/c", "later")
    index.site.put("/docs/b/later", "", status=403)
    first = await index.read()
    assert first.counts["failed"] == 1
    same = await index.read()
    assert not same.changed
    assert max(index.asked().values()) == 1, index.asked()
    assert not [path for path, status, _ in index.site.log if status == 200 and path in READ]
    linking(index.site, "/docs/b/later", "latest")
    linking(index.site, "/docs/b/latest")
    del index.site.answers["/docs/new"]
    report = await index.read()
    assert set(await index.pages()) == READ - {"/docs/new"} | {"/docs/b/later", "/docs/b/latest"}, report.text


async def test_a_farm_of_links_ends_at_the_limits_and_a_higher_limit_reads_on(index: Followed) -> None:
    """Each page of an endless site links to forty more; the report counts what was left out."""
    endless = Endless(index.site)
    index.site.answers = endless
    report = await index.read(max_pages=20, max_depth=3)
    assert len(await index.pages()) <= 20
    assert len(index.asked()) <= 20
    assert "more than max_pages = 20" in report.text
    deep = await index.read(max_pages=100, max_depth=1)
    assert "deeper than max_depth = 1" in deep.text
    assert len(await index.pages()) > 35


class Endless(dict[str, "Answer"]):
    """A site that has every page."""

    def __init__(self, site: LocalSite) -> None:
        self.site = site

    def get(self, path: str, default: object = None) -> Answer:  # type: ignore[override]
        """The page, with links to pages of its own."""
        if not path.startswith("/docs/") or "." in path:
            return Answer(b"Not found", "text/plain", 404)
        links = "".join(f'<a href="/docs/{abs(hash((path, n)))}">x</a>' for n in range(40))
        body = f"<html lang=en><nav>{links}</nav><main><h1>{path}</h1><p>{WORDS} It is {path}.</p></main>"
        return Answer(body.encode())


async def test_a_page_is_followed_where_the_source_says_so_and_a_site_without_start_is_an_error(
    index: Followed, fetcher: Fetcher
) -> None:
    """A sitemap is used where there is one, unless the source has `follow`."""
    index.site.sitemap("/docs/a", at="/docs/sitemap.xml")
    listed = await list_sources([Source(url=f"{index.site.url}/docs/")], fetcher)
    assert [entry.url for entry in listed.entries] == [f"{index.site.url}/docs/a"]
    followed = await list_sources([Source(url=f"{index.site.url}/docs/a", follow=True)], fetcher)
    assert {entry.url.removeprefix(index.site.url) for entry in followed.entries} >= READ
    linking(index.site, "/", "/docs/")
    whole = await list_sources([Source(url=index.site.url)], fetcher)
    assert {entry.url.removeprefix(index.site.url) for entry in whole.entries} >= READ | {"/"}
    with pytest.raises(SitemapError, match=r"/nothing/ can't be read: answered 404"):
        await list_sources([Source(url=f"{index.site.url}/nothing/", follow=True)], fetcher)
