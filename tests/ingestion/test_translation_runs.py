"""The translation sets that the index has follow what a site adds, moves and removes, run by run."""

from __future__ import annotations

import json

from ingestion.sources import Source
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite
from tests.ingestion.test_translation_sets import text

TYPE = "text/markdown; charset=utf-8"


def put(site: LocalSite, *paths: str) -> str:
    """Serve these pages, each about the topic that its address ends with, and list them."""
    english = "This is the page that shows what you have to know about it and how it works. "
    czech = "Na této stránce se dozvíte, co o tom potřebujete vědět a jak to celé funguje. "
    for path in paths:
        language, prose = ("cs", czech) if "/cs/" in path else ("en", english)
        site.put(path, text(int(path[-1]), language) + "\n\n" + prose * 4, TYPE)
    return site.sitemap(*paths)


async def sets(index: Index) -> dict[str, str]:
    """The id of each page's set, without the host."""
    found = {
        path: page.derived.translation_set
        for path, page in (await index.pages()).items()
        if page.derived.translation_set
    }
    return {path: "/" + of.split("/", 3)[-1] for path, of in found.items()}


async def test_sets_follow_adds_moves_and_deletions(site: LocalSite, index: Index) -> None:
    """Without another embedding of what didn't change, and without a generation where nothing did."""
    report = await index.run(put(site, "/en/disk-1", "/cs/disk-1", "/en/disk-2"))
    assert await sets(index) == {"/en/disk-1": "/en/disk-1", "/cs/disk-1": "/en/disk-1"}
    live, states = (await index.store.live()).info.id, await index.pages()
    assert [len(states[path].derived.counterparts) for path in ("/en/disk-1", "/cs/disk-1", "/en/disk-2")] == [1, 1, 0]
    embedded = len(index.embedder.texts)
    assert not (await index.run(site.url + "/sitemap.xml")).changed
    assert (await index.store.live()).info.id == live
    assert await index.pages() == states
    assert len(index.embedder.texts) == embedded
    report = await index.run(put(site, "/en/disk-1", "/cs/disk-1", "/en/disk-2", "/cs/disk-2"))
    new = index.embedder.texts[embedded:]
    assert report.embedded_texts == len(new) > 0
    assert all(text.startswith("Nastavení 2\n") for text in new), new
    assert (await sets(index))["/en/disk-2"] == "/en/disk-2"  # a page that itself didn't change
    await index.run(put(site, "/en/volume-1", "/cs/volume-1", "/en/disk-2", "/cs/disk-2"), force=True)
    volume, disk = (dict.fromkeys((f"/en/{name}", f"/cs/{name}"), f"/en/{name}") for name in ("volume-1", "disk-2"))
    assert await sets(index) == volume | disk
    await index.run(put(site, "/en/volume-1", "/cs/volume-1", "/cs/disk-2"), force=True)
    assert await sets(index) == volume


async def test_a_source_may_deny_translations(site: LocalSite, index: Index) -> None:
    """And what it says holds for pages that a later run doesn't read."""
    url = put(site, "/en/disk-1", "/cs/disk-1")
    await index.run(url)
    await index.run(Source(url=url, translations="none"))
    assert await sets(index) == {}
    await index.run(Source(url=url, translations="/{lang}/"))
    assert len(await sets(index)) == 2


async def test_the_report_counts_pairs_by_what_says_so(site: LocalSite, index: Index) -> None:
    report = await index.run(put(site, "/en/disk-1", "/cs/disk-1", "/en/disk-2"))
    assert "Pages in several languages: 1 (2 addresses; pairs: 1 by address /{lang}/)." in report.text
    assert f"Translations by address /{{lang}}/, for example:\n  {site.url}/" in report.text
    (pairs,) = json.loads(report.to_json())["translations"]["pairs"]
    assert (pairs["origin"], pairs["form"], pairs["pairs"]) == ("address", "/{lang}/", 1)
    assert sorted(pairs["sample"][0]) == [f"{site.url}/cs/disk-1", f"{site.url}/en/disk-1"]
