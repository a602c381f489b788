"""`docs-assistant check`: before indexing, after it, and with each part that doesn't work."""

from __future__ import annotations

import json
from pathlib import Path

from app.core.settings import Settings
from tests.fake_llm import FakeLLM, Reply
from tests.ingestion.local_site import LocalSite


def test_nothing_indexed_is_a_problem_with_a_remedy(cli):
    """Exit code 1 and the command to run; no directory is created."""
    done = cli("check")
    assert done.code == 1
    assert "index           PROBLEM: Nothing has been indexed yet: run `docs-assistant ingest` first." in done.out
    assert "embedder        wordllama-256: answers" in done.out
    assert "language model  none (DOCS_LLM_URL)" in done.out
    assert not Path("data").exists()


def test_an_index_is_described(cli, indexed: LocalSite):
    """Pages by language and collection, chunks, age, embedder; all well is exit code 0."""
    done = cli("check")
    assert done.code == 0
    assert "PROBLEM" not in done.out
    assert "generation 1, 3 pages (en 3), 3 chunks" in done.out
    findings = json.loads(cli("check", "--json").out)
    assert findings["ok"] is True
    assert findings["index"]["pages_by_language"] == {"en": 3}
    assert findings["index"]["pages_by_collection"] == {"docs": 3}
    assert (findings["index"]["embedder"], findings["index"]["dimension"]) == ("wordllama-256", 256)
    assert findings["index"]["age_hours"] < 1


def test_every_setting_is_listed_as_one_would_write_it(cli):
    """As text and as JSON; brackets in a value are printed as they are."""
    names = [f"DOCS_{name.upper()}" for name in Settings.model_fields]
    done = cli("check", DOCS_USER_AGENT="[/bold] reader", DOCS_VECTOR_WEIGHT='{"cs": 0.4}')
    rows = dict(line.partition(" ")[::2] for line in done.out.split("\n\n")[0].splitlines())
    assert list(rows) == names
    assert rows["DOCS_USER_AGENT"].strip() == "[/bold] reader"
    assert rows["DOCS_LANGUAGES"].strip() == "cs en"
    assert rows["DOCS_EXACT"].strip() == "false"
    assert rows["DOCS_VECTOR_WEIGHT"].strip() == '{"cs": 0.4}'
    assert rows["DOCS_LLM_ARGS"] == ""
    assert list(json.loads(cli("check", "--json").out)["settings"]) == names


def test_another_embedder_than_the_index_s_is_a_problem(cli, indexed: LocalSite, llm: FakeLLM):
    """The message names both and the remedy."""
    settings = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "eight"}
    findings = json.loads((done := cli("check", "--json", **settings)).out)
    assert done.code == 1
    assert "wordllama-256" in findings["index_problem"]
    assert "index anew" in findings["index_problem"]
    assert findings["embedder"]["problem"] == ""
    assert "eight" in findings["embedder"]["name"]


def test_models_that_do_not_answer_are_problems(cli, indexed: LocalSite, llm: FakeLLM):
    """Each is reported under its own name, and so is one that answers."""
    language_model = {"DOCS_LLM_URL": llm.url, "DOCS_LLM_MODEL": "scripted"}
    assert "language model  scripted: answers" in cli("check", **language_model).out
    llm.reply, llm.embedding_status = lambda _: Reply("overloaded", status=500), 500
    findings = json.loads((done := cli("check", "--json", **language_model)).out)
    assert done.code == 1
    assert "500" in findings["language_model"]["problem"]
    embedder = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "eight"}
    shown = cli("check", **embedder)
    assert shown.code == 1
    assert "answered 500" in shown.out


def test_a_store_that_is_down_is_a_problem(cli):
    """The other parts are checked nevertheless."""
    done = cli("check", "--json", DOCS_STORE="opensearch://127.0.0.1:1/docs")
    findings = json.loads(done.out)
    assert done.code == 1
    assert "127.0.0.1:1" in findings["index_problem"]
    assert findings["index"] is None
    assert findings["embedder"]["problem"] == ""
    assert done.err == ""


def test_a_damaged_index_is_a_problem(cli, indexed: LocalSite):
    """The message names the file and the remedy."""
    Path("data/index.json").write_text("{")
    done = cli("check")
    assert done.code == 1
    assert "index.json is damaged" in done.out


def test_a_wrong_splitter_or_reader_is_a_problem(cli, indexed: LocalSite):
    """Before a night fails because of it; nothing is read."""
    done = cli("check", DOCS_SPLITTER="no_such_package:Parser")
    assert done.code == 1
    assert "indexing        PROBLEM: DOCS_SPLITTER=no_such_package:Parser: there is no module" in done.out
    Path("sites.toml").write_text('[[source]]\nurl = "https://a.example.org/"\nreader = "json:Nothing"\n')
    findings = json.loads(cli("check", "--json", DOCS_SOURCES="sites.toml").out)
    assert "reader=json:Nothing: json has no class Nothing" in findings["indexing_problem"]
