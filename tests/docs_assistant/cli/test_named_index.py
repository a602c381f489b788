"""Indexes of assistants.toml: commands fill and show them by name."""

import json
from pathlib import Path

import pytest
import yaml

from app.assistants.assembly import opened
from app.core.settings import Settings
from tests.end_to_end.threads import llm_in_a_thread
from tests.fake_llm import FakeLLM
from tests.ingestion.local_site import LocalSite

STEPS = 'steps = ["detect", "retrieve", "synthesize"]\n'


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Two assistants, the second one on an index of its own with another embedder."""
    with llm_in_a_thread() as llm:
        text = f'[[index]]\nid = "other"\nstore = "{tmp_path}/other"\nembedding_url = "{llm.url}"\n'
        text += f'embedding_model = "other-e"\n[[assistant]]\nid = "one"\n{STEPS}'
        text += f'[[assistant]]\nid = "two"\nindex = "other"\ncollections = ["docs"]\n{STEPS}'
        (tmp_path / "own.toml").write_text(text, "utf-8")
        monkeypatch.setenv("DOCS_ASSISTANTS", str(tmp_path / "own.toml"))
        monkeypatch.setenv("DOCS_STORE", str(tmp_path / "data"))
        yield llm


def test_commands_fill_and_show_it_by_its_name(cli, named: FakeLLM, site: LocalSite, tmp_path: Path) -> None:
    """The configured index stays as it is: here there is none."""
    done = cli("ingest", f"{site.url}/sitemap.xml", "--index", "other", "--json")
    assert json.loads(done.out)["published"]["recipe"]["embedder"] == "other-e"
    assert (tmp_path / "other").is_dir()
    assert not (tmp_path / "data").exists()
    assert len(json.loads(cli("pages", "--index", "other", "--json").out)) == 3
    assert cli("pages").code == 1
    (kept,) = json.loads(cli("generations", "--index", "other", "--json").out)
    assert (kept["live"], kept["pages"]) == (True, 3)
    site.page("/gauge-0", "Gauge", "Gauge number nought measures steam.")
    cli("ingest", f"{site.url}/sitemap.xml", "--index", "other")
    assert "Generation 1 is live again" in cli("rollback", "--index", "other").out


def test_an_unknown_one_is_an_error(cli, named: FakeLLM) -> None:
    for command in ("ingest", "pages", "generations", "rollback"):
        done = cli(command, "--index", "gone")
        assert done.code == 1
        assert "own.toml: there is no [[index]] 'gone'. Available: other." in done.err


def test_check_reports_each_index_in_use(cli, named: FakeLLM, site: LocalSite) -> None:
    """Each with its own problem, and collections are looked for in the index of their assistant."""
    cli("ingest", f"{site.url}/sitemap.xml")
    findings = json.loads((done := cli("check", "--json")).out)
    assert done.code == 1
    assert (findings["index"]["pages"], findings["index_problem"]) == (3, "")
    assert findings["indices"]["other"]["index"] is None
    assert "docs-assistant ingest --index other" in findings["indices"]["other"]["index_problem"]
    assert findings["collections_without_pages"] == {}
    cli("ingest", f"{site.url}/sitemap.xml", "--index", "other")
    done = cli("check")
    shown = yaml.safe_load(done.out.split("\n\n")[2])["indices"]["other"]
    assert (done.code, shown["index"]["pages"], shown["embedder"]) == (0, 3, {"name": "other-e"})


async def test_health_reports_each_index_in_use(named: FakeLLM, site: LocalSite) -> None:
    """The first assistant's decides; the others are in the details for operators."""
    from ingestion.run import ingest

    settings = Settings.load(None)
    async with opened(settings) as made:
        assert not (await made.health()).ok
        await ingest([f"{site.url}/sitemap.xml"], store=made.store, embedder=made.embedder, settings=settings)
        health = await made.health()
        assert (health.ok, health.index.pages) == (True, 3)
        assert health.details["indices"]["other"]["ok"] is False
        assert "docs-assistant ingest --index other" in health.details["indices"]["other"]["problem"]
        other = made.indices["other"]
        await ingest([f"{site.url}/sitemap.xml"], store=other.store, embedder=other.embedder, settings=other.settings)
        state = (await made.health()).details["indices"]["other"]
        assert (state["ok"], state["generation"], state["pages"]) == (True, 1, 3)
