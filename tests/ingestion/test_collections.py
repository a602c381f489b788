"""Several collections in one index: each has its own runs, and an assistant answers from as many as it likes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.errors import SettingsError
from app.core.settings import Settings
from ingestion.report import Report
from ingestion.sources import as_sources, load_sources, of_collections
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite

CZECH = "Úložiště založíte příkazem a jeho velikost nastavíte podle toho, kolik dat budete potřebovat uložit. " * 3
FRENCH = "Vous créez le stockage avec une commande et vous choisissez sa taille selon les données à enregistrer. " * 3


class Shelf(Index):
    """Two collections: docs of two sites, and a handbook."""

    def __init__(self, site: LocalSite, directory: Path) -> None:
        super().__init__(directory / "data", site)
        for name in ("a1", "a2", "b1", "b2", "h1", "h2", "h3"):
            site.page(
                f"/{name}", f"Page {name}", f"The {name} gauge measures the pressure of {name}.", f"More of {name}."
            )
        site.sitemap("/a1", "/a2", at="/a.xml")
        site.sitemap("/b1", "/b2", at="/b.xml")
        site.sitemap("/h1", "/h2", "/h3", at="/h.xml")
        self.file = directory / "sites.toml"
        self.file.write_text(
            "".join(
                f'[[source]]\nurl = "{site.url}/{name}.xml"\ncollection = "{collection}"\n'
                for name, collection in (("a", "docs"), ("b", "docs"), ("h", "handbook"))
            ),
            encoding="utf-8",
        )

    async def read(self, *collections: str, **how: object) -> Report:
        sources = as_sources([str(self.file)])
        return await self.run(*of_collections(sources, collections, self.settings()) if collections else sources, **how)

    async def held(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for page in await (await self.store.live()).pages():
            found.setdefault(page.collection, set()).add(page.url.rpartition("/")[2])
        return found


@pytest.fixture
async def shelf(site: LocalSite, tmp_path: Path) -> AsyncIterator[Shelf]:
    """Nothing is indexed yet."""
    async with Shelf(site, tmp_path) as made:
        yield made


async def test_each_collection_has_runs_of_its_own(shelf: Shelf) -> None:
    """No request goes to the other one's sites, and no page of it is touched."""
    await shelf.read("docs")
    assert await shelf.held() == {"docs": {"a1", "a2", "b1", "b2"}}
    assert shelf.site.statuses("/h.xml") == []
    before = {page.url: page for page in await (await shelf.store.live()).pages()}
    report = await shelf.read("handbook")
    assert report.counts["new"] == len(report.pages) == 3
    now = {page.url: page for page in await (await shelf.store.live()).pages()}
    assert {url: now[url] for url in before} == before
    shelf.site.page("/h1", "Page h1", "Rewritten.")
    report = await shelf.read("handbook")
    assert (report.counts["changed"], report.counts["removed"]) == (1, 0)
    assert await shelf.held() == {"docs": {"a1", "a2", "b1", "b2"}, "handbook": {"h1", "h2", "h3"}}


async def test_what_leaves_and_the_guard_are_within_the_collections_of_the_run(shelf: Shelf) -> None:
    """`only` spares other collections, and a small collection is not lost beside a large one."""
    await shelf.read()
    sources = Path(shelf.file)
    sources.write_text(
        sources.read_text("utf-8").partition('[[source]]\nurl = "' + shelf.site.url + "/b.xml")[0], "utf-8"
    )
    assert (await shelf.read("docs", only=True)).counts["removed"] == 2
    assert await shelf.held() == {"docs": {"a1", "a2"}, "handbook": {"h1", "h2", "h3"}}
    Shelf(shelf.site, shelf.file.parent)
    shelf.site.sitemap("/h1", at="/h.xml")
    report = await shelf.read("docs", "handbook")
    assert re.search(r"2 of 3 pages of .*/h\.xml", report.failed_sources[0])
    assert await shelf.held() == {"docs": {"a1", "a2", "b1", "b2"}, "handbook": {"h1", "h2", "h3"}}
    assert (await shelf.read("docs")).counts["removed"] == 0


def test_a_collection_that_no_source_has_is_an_error(shelf: Shelf) -> None:
    """It names those that there are, the one of plain addresses too."""
    sources = as_sources([str(shelf.file), "https://plain.example.org/"])
    settings = Settings.load(None, collection="plain")
    assert [source.url for source in of_collections(sources, ["plain"], settings)] == ["https://plain.example.org/"]
    with pytest.raises(SettingsError, match=r"collection manual\. There are: docs, handbook, plain"):
        of_collections(sources, ["docs", "manual"], settings)


async def test_a_collection_has_languages_of_its_own(shelf: Shelf, site: LocalSite) -> None:
    """What a page may be written in is the source's, also a language that nobody can ask in; others are left out."""
    site.page("/h1", "Úložiště", CZECH)
    site.page("/h2", "Stockage", FRENCH)
    for languages, left_out in (('["en", "cs"]', {"fr": 1}), ('["en", "fr"]', {"cs": 1})):
        shelf.file.write_text(
            f'collection = "handbook"\nlanguages = {languages}\nlanguage = "en"\n[[source]]\nurl = "{site.url}/h.xml"\n',
            encoding="utf-8",
        )
        assert (await shelf.read()).other_languages == left_out


def test_a_file_may_say_once_what_holds_for_all_its_sources(tmp_path: Path) -> None:
    """A source's own word wins; other keys are named as unknown."""
    file = tmp_path / "handbook.toml"
    text = 'collection = "handbook"\nlanguage = "cs"\n[[source]]\nurl = "https://a.example.org/"\n[[source]]\nurl = "https://b.example.org/"\nlanguage = "en"\n'
    file.write_text(text, encoding="utf-8")
    assert [(source.collection, source.language) for source in load_sources(file)] == [
        ("handbook", "cs"),
        ("handbook", "en"),
    ]
    file.write_text(f'schedule = "daily"\n{text}', encoding="utf-8")
    with pytest.raises(SettingsError, match=r"unknown key 'schedule'.*collection, language, languages"):
        load_sources(file)
