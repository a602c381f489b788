"""Sections of Markdown get the ids that the rule of their site gives them, and none where that isn't certain."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ingestion.convert.markdown.structure import github, mkdocs
from ingestion.sources import Source
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite

HEADINGS = ["Žluťoučký kůň", "Co je to?", "Volume `my_claim`", "Žluťoučký kůň", "A – B & C"]
GITHUB = ["žluťoučký-kůň", "co-je-to", "volume-my_claim", "žluťoučký-kůň-1", "a--b--c"]
MKDOCS = ["zlutoucky-kun", "co-je-to", "volume-my_claim", "zlutoucky-kun_1", "a-b-c"]


class Site(Index):
    """A site that lists its pages as raw Markdown and has HTML of them too."""

    def __init__(self, directory: Path, site: LocalSite) -> None:
        super().__init__(directory, site, crawl_parallel=1, chunk_size=20000)
        self.paths: list[str] = []

    def put(self, name: str, headings: list[str], ids: list[str] | None) -> None:
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

    async def anchors(self, rule: str = "auto") -> dict[str, list[str]]:
        """Index the site; anchors of the sections below the title, by page."""
        await self.run(Source(url=self.site.sitemap(*self.paths), anchors=rule))
        live = await self.store.live()
        found = {}
        for listed in await live.pages():
            chunks = await live.fetch(listed.derived.chunk_ids)
            found[listed.url.rpartition("/")[2]] = [s.anchor for c in chunks for s in c.sections if len(s.path) > 1]
        return found

    def asked(self) -> int:
        """How many HTML pages were asked for."""
        return sum(path.count(".") == 0 for path, _, _ in self.site.log)


@pytest.fixture
async def docs(site: LocalSite, tmp_path: Path) -> AsyncIterator[Site]:
    """A site without pages yet."""
    async with Site(tmp_path / "data", site) as made:
        yield made


def test_rules_of_generators() -> None:
    """Diacritics, punctuation, underscores and repeats, as github-slugger and Python-Markdown have them."""
    plain = [heading.replace("`", "") for heading in HEADINGS]
    assert github(plain) == GITHUB
    assert mkdocs(plain) == MKDOCS
    assert github(["A", "A 1", "A", "A-1"]) == ["a", "a-1", "a-2", "a-1-1"]
    assert mkdocs(["A", "A", "A", "A_1"]) == ["a", "a_1", "a_2", "a_3"]
    assert mkdocs(["Ďěř", "你好"]) == ["der", "_1"]


async def test_ids_on_which_the_rules_agree_are_sure(docs: Site) -> None:
    """Others are empty: then answers link to the page. No HTML is asked for."""
    docs.put("a", ["Use", "Kůň", "Install it", "Install it", "A – B & C"], ["x1", "x2", "x3", "x4", "x5"])
    assert (await docs.anchors())["a"] == ["use", "", "install-it", "", ""]
    assert docs.asked() == 0


@pytest.mark.parametrize(("rule", "ids"), [("github", GITHUB), ("mkdocs", MKDOCS), ("none", [""] * 5)])
async def test_a_rule_that_is_set_needs_no_page(docs: Site, rule: str, ids: list[str]) -> None:
    """`anchors` of the source names the rule, and no HTML is fetched; what the Markdown says counts before any rule."""
    docs.put("a", HEADINGS, ["x1", "x2", "x3", "x4", "x5"])
    docs.put("b", ["Use {#how-to-use}"], None)
    assert await docs.anchors(rule) == {"a": ids, "b": ["how-to-use"]}
    assert docs.asked() == 0
