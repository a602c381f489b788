"""`docs-assistant ingest`: the guard, dry runs, the page of the report, and collections, as typed."""

import json
from pathlib import Path

import pytest

from tests.ingestion.local_site import LocalSite

ASSISTANTS = """
[[assistant]]
id = "both"
steps = ["detect", "probe", "retrieve", "synthesize", "cite"]
collections = ["docs", "handbook"]

[[assistant]]
id = "handbook"
steps = ["detect", "probe", "retrieve", "synthesize", "cite"]
collections = ["handbook"]
"""


def test_a_refused_run_says_why_and_force_publishes_it(cli, site: LocalSite):
    """Exit code 3, the reason on standard error, the report on standard output."""
    sitemap = f"{site.url}/sitemap.xml"
    cli("ingest", sitemap)
    site.sitemap("/gauge-0")
    done = cli("ingest", sitemap)
    assert done.code == 3
    assert "docs-assistant: Nothing was published" in done.err
    assert "2 of 3 pages" in done.err
    assert "--force" in done.err
    assert done.out.splitlines()[1].startswith("Not published: 2 of 3 pages")
    report = json.loads(cli("ingest", sitemap, "--json").out)
    assert (report["exit_code"], report["published"], len(report["refused"])) == (3, None, 1)
    assert cli("ingest", sitemap, "--force").code == 0
    assert json.loads(cli("pages", "--json").out)[0]["url"] == f"{site.url}/gauge-0"


def test_a_dry_run_leaves_nothing_behind(cli, site: LocalSite):
    """No index and no embedded text; the report is that of the real run."""
    done = cli("ingest", f"{site.url}/sitemap.xml", "--dry-run")
    assert done.code == 0
    assert "Dry run, nothing was written. A real one would embed 3 texts" in done.out
    assert not Path("data").exists() or not list(Path("data").iterdir())
    assert cli("pages").code == 1


@pytest.fixture
def shelf(site: LocalSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of two collections, and assistants over both and over one."""
    site.page("/valve", "Valve", "A valve opens when the pressure in boiler 1 is too high.")
    site.sitemap("/valve", at="/handbook.xml")
    sources = f'[[source]]\nurl = "{site.url}/sitemap.xml"\n[[source]]\nurl = "{site.url}/handbook.xml"\ncollection = "handbook"\n'
    Path("sites.toml").write_text(sources, encoding="utf-8")
    Path("assistants.toml").write_text(ASSISTANTS, encoding="utf-8")
    monkeypatch.setenv("DOCS_SOURCES", "sites.toml")
    monkeypatch.setenv("DOCS_ASSISTANTS", "assistants.toml")


def test_an_assistant_answers_from_collections_indexed_one_by_one(cli, site: LocalSite, shelf: None):
    """Two runs, two schedules, one index: sources of an answer come from both, ranked together, or from one."""
    first = json.loads(cli("ingest", "--json", "--collection", "docs").out)
    assert first["sites"] == [f"{site.url}/sitemap.xml"]
    second = json.loads(cli("ingest", "--json", "--collection", "handbook").out)
    assert (second["counts"]["new"], second["counts"]["removed"], second["published"]["pages"]) == (1, 0, 4)
    collections = {page["collection"] for page in json.loads(cli("pages", "--json").out)}
    assert collections == {"docs", "handbook"}

    def sources(model: str) -> set[str]:
        done = cli("ask", "--assistant", model, "--json", "What happens at which pressure in boiler 1?")
        return {source["url"].removeprefix(site.url).partition("#")[0] for source in json.loads(done.out)["sources"]}

    assert {"/valve", "/gauge-1"} <= sources("both")
    assert sources("handbook") == {"/valve"}
