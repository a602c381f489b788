"""Sections of raw Markdown get the ids that their site gives them, and none where that isn't certain."""

import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.settings import Settings
from app.index.embedded.store import EmbeddedStore
from ingestion.convert.slugs import github, mkdocs
from ingestion.crawl.fetch import Fetcher
from ingestion.run import ingest
from ingestion.sources import Source
from tests.fakes import FakeEmbedder
from tests.ingestion.local_site import Answer, LocalSite

HEADINGS = ["Žluťoučký kůň", "Co je to?", "Volume `my_claim`", "Žluťoučký kůň", "A – B & C"]
GITHUB = ["žluťoučký-kůň", "co-je-to", "volume-my_claim", "žluťoučký-kůň-1", "a--b--c"]
MKDOCS = ["zlutoucky-kun", "co-je-to", "volume-my_claim", "zlutoucky-kun_1", "a-b-c"]


class Site:
    """A site that lists its pages as raw Markdown and has HTML of them too."""

    def __init__(self, site: LocalSite, directory: Path) -> None:
        self.site = site
        self.store = EmbeddedStore(directory)
        self.paths: list[str] = []

    def page(self, name: str, headings: list[str], ids: list[str] | None) -> None:
        """Put a page in both forms; with `ids` None there is no HTML, with an empty id that heading has none."""
        text = "".join(f"## {heading}\n\nText of {name} on {heading}.\n\n" for heading in headings)
        self.site.put(f"/{name}.md", f"# Title of {name}\n\n{text}", "text/markdown")
        self.paths.append(f"/{name}.md")
        if ids is not None:
            rendered = [re.sub(r"`(.*?)`", r"<code>\1</code>", heading).replace("&", "&amp;") for heading in headings]
            body = "".join(
                f"<h2{f' id={made!r}' if made else ''}>{heading}</h2><p>Text of {name}.</p>"
                for heading, made in zip(rendered, ids, strict=True)
            )
            self.site.put(f"/{name}", f"<html><main><h1>Title of {name}</h1>{body}</main></html>")

    def after(self, first: str, path: str) -> None:
        """Answer at the path only when the first one was answered."""
        answer = self.site.answers[path]

        def wait() -> Answer:
            deadline = time.monotonic() + 120
            while not self.site.statuses(first) and time.monotonic() < deadline:
                time.sleep(0.01)
            return answer() if callable(answer) else answer

        self.site.answers[path] = wait

    async def anchors(self, **settings: object) -> dict[str, list[str]]:
        """Index the site; anchors of the sections below the title, by page."""
        loaded = Settings.load(None, **{"crawl_parallel": 1, "chunk_size": 20000, **settings})
        async with Fetcher(loaded, retry_wait=0.01) as fetcher:
            sitemap = self.site.sitemap(*self.paths)  # with `auto`, HTML is also read to compare it
            await ingest(
                [Source(url=sitemap, markdown="accept")],
                store=self.store,
                embedder=FakeEmbedder(),
                settings=loaded,
                fetcher=fetcher,
            )
        live = await self.store.live()
        found = {}
        for listed in await live.pages():
            chunks = await live.fetch(listed.chunk_ids)
            found[listed.url.rpartition("/")[2]] = [s.anchor for c in chunks for s in c.sections if len(s.path) > 1]
        return found

    def asked(self) -> int:
        """How many HTML pages were asked for."""
        return sum(path.count(".") == 0 for path, _, _ in self.site.log)


@pytest.fixture
async def docs(site: LocalSite, tmp_path: Path) -> AsyncIterator[Site]:
    """A site without pages yet."""
    made = Site(site, tmp_path / "data")
    yield made
    await made.store.close()


def test_rules_of_generators() -> None:
    """Diacritics, punctuation, underscores and repeats, as github-slugger and Python-Markdown have them."""
    plain = [heading.replace("`", "") for heading in HEADINGS]
    assert github(plain) == GITHUB
    assert mkdocs(plain) == MKDOCS
    assert github(["A", "A 1", "A", "A-1"]) == ["a", "a-1", "a-2", "a-1-1"]
    assert mkdocs(["A", "A", "A", "A_1"]) == ["a", "a_1", "a_2", "a_3"]
    assert mkdocs(["Ďěř", "你好"]) == ["der", "_1"]


@pytest.mark.parametrize(("ids", "other"), [(GITHUB, "kůň-a-vůz"), (MKDOCS, "kun-a-vuz")])
async def test_the_rule_is_learnt_from_one_page(docs: Site, ids: list[str], other: str) -> None:
    """One HTML page is fetched; the others, whose HTML nobody has seen, get their ids by the same rule."""
    docs.page("a", HEADINGS, ids)
    for name in "bcd":
        docs.page(name, ["Kůň a vůz", "Use"], None)
    for name in "bcd":
        docs.after("/a", f"/{name}.md")  # pages are converted side by side: else b may be the one that is asked for
    found = await docs.anchors(crawl_parallel=4)
    assert found == {"a": ids, **{name: [other, "use"] for name in "bcd"}}
    assert docs.asked() == 1


async def test_headings_that_rules_agree_on_are_sure_and_others_are_asked_for(docs: Site) -> None:
    """A plain page leaves both rules open; the page on which they differ decides, and is the second one asked for."""
    docs.page("a", ["Use", "Install it"], ["use", "install-it"])
    docs.page("b", ["Kůň", "Vůz"], ["kun", "vuz"])
    docs.page("c", ["Kůň a vůz", "Pes"], None)
    docs.after("/a", "/b.md")
    docs.after("/b", "/c.md")
    # while b and c wait, the page that b waits for needs a place, too
    assert await docs.anchors(crawl_parallel=3) == {
        "a": ["use", "install-it"],
        "b": ["kun", "vuz"],
        "c": ["kun-a-vuz", "pes"],
    }
    assert docs.asked() == 2


@pytest.mark.parametrize(
    "ids",
    [
        ["sec-1", "sec-2", "sec-3", "sec-4", "sec-5"],
        [*GITHUB[:4], "something-else"],
        ["", "", "", "", ""],
        None,
    ],
)
async def test_what_fits_no_rule_links_to_the_page(docs: Site, ids: list[str] | None) -> None:
    """Ids of another kind, one that differs, none at all, or no HTML: no anchor is made up; few pages are asked for."""
    docs.page("a", HEADINGS, ids)
    for name in "bcdef":
        docs.page(name, ["Use", "More"], [f"x{name}", "y"])
    found = await docs.anchors()
    assert found["b"] == found["f"] == ["", ""]
    assert docs.asked() <= 3


async def test_headings_of_their_own_id_keep_it(docs: Site) -> None:
    """What the Markdown says counts before any rule."""
    docs.page("a", HEADINGS, GITHUB)
    docs.page("b", ["Use {#how-to-use}", "Kůň"], None)
    assert (await docs.anchors())["b"] == ["how-to-use", "kůň"]


async def test_levels_without_ids_in_html_get_none(docs: Site) -> None:
    """Where the theme gives ids to some levels only, an anchor at another would lead nowhere."""
    text = "## Use\n\nx\n\n### Deep\n\nx\n\n## More\n\nx\n"
    docs.site.put("/a.md", f"# A\n\n{text}", "text/markdown")
    docs.site.put("/a", "<main><h1>A</h1><h2 id=use>Use</h2><p>x<h3>Deep</h3><p>x<h2 id=more>More</h2><p>x</main>")
    docs.paths.append("/a.md")
    assert (await docs.anchors())["a"] == ["use", "", "more"]


@pytest.mark.parametrize(("rule", "ids"), [("github", GITHUB), ("mkdocs", MKDOCS), ("none", [""] * 5)])
async def test_a_rule_that_is_set_needs_no_page(docs: Site, rule: str, ids: list[str]) -> None:
    """DOCS_ANCHORS names the rule, and no HTML is fetched."""
    docs.page("a", HEADINGS, ["x1", "x2", "x3", "x4", "x5"])
    assert (await docs.anchors(anchors=rule))["a"] == ids
    assert docs.asked() == 0


async def test_nothing_is_asked_for_when_nothing_changed(docs: Site) -> None:
    """A second run knows the pages as they are."""
    docs.page("a", HEADINGS, GITHUB)
    first = await docs.anchors()
    docs.site.log.clear()
    assert await docs.anchors() == first
    assert docs.asked() == 0
