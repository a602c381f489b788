"""`docs-assistant ingest`: the guard, dry runs, the page of the report, and collections, as typed."""

import json
from pathlib import Path

import pytest

from app.core.retries import Patience
from tests.fake_llm import FakeLLM, Reply
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


@pytest.mark.parametrize(
    ("status", "batch"),
    [(402, 1), (401, 2), (429, 1), (503, 2), (500, 8)],
)
def test_a_run_that_fails_half_way_keeps_its_vectors_and_says_so(
    cli, site: LocalSite, llm: FakeLLM, monkeypatch: pytest.MonkeyPatch, status: int, batch: int
):
    """The next run embeds the rest alone: no text is paid for twice."""
    monkeypatch.setattr("app.models.openai_embedder.OF_RUN", Patience(2, 0.001))
    for n in range(8):
        site.page(f"/gauge-{n}", f"Gauge {n}", f"Gauge number {n} measures pressure in boiler {n}.")
    site.sitemap(*(f"/gauge-{n}" for n in range(8)))
    embedder = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "e"}
    limits = {"DOCS_TUNING__EMBEDDING_BATCH": str(batch), "DOCS_TUNING__EMBEDDING_PARALLEL": "1"}
    llm.most_texts, llm.too_many = 3, Reply("too large", status=413)
    done: list[str] = []

    def stop_after_four() -> None:
        passages = [text for call in llm.embedded for text in call if text != "dimension"]
        if llm.embedding_status == 200 and len(passages) > 4:
            llm.embedding_status = status
        elif llm.embedding_status == 200:
            done[:] = passages

    llm.embedding_hook = stop_after_four
    failed = cli("ingest", f"{site.url}/sitemap.xml", **embedder, **limits)
    assert failed.code == 1
    assert str(status) in failed.err
    assert f"{len(done)} have vectors, which are kept: the next run goes on from there" in failed.err
    llm.embedding_status, llm.embedding_hook = 200, lambda: None
    llm.embedded.clear()
    report = json.loads(cli("ingest", f"{site.url}/sitemap.xml", "--json", **embedder, **limits).ok)
    assert f"an unfinished run had left {len(done)} vectors, which were used" in report["warnings"]
    assert 0 < len(done) <= 4
    assert not set(done) & {text for call in llm.embedded for text in call}
    assert not Path("data/next-vectors.sqlite3").exists()


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
