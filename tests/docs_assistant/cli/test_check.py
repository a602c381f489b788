"""`docs-assistant check`: before indexing, after it, and with each part that doesn't work."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from app.core.settings import FIELDS, NAMES
from tests.docs_assistant.cli.conftest import model_at
from tests.docs_assistant.cli.stored_index import Index, page_with
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import WORDS, WORDS_SETTING, WORDS_SIZE
from tests.ingestion.local_site import LocalSite


def test_nothing_indexed_is_a_problem_with_a_remedy(cli):
    """Exit code 1 and the command to run; no directory is created."""
    done = cli("check")
    assert done.code == 1
    shown = yaml.safe_load(done.out.split("\n\n")[2])
    assert shown["problems"] == ["index: Nothing has been indexed yet: run `docs-assistant ingest` first."]
    assert (shown["embedder"], shown["conversations"]["days"]) == ({"name": WORDS}, 30)
    assert not Path("data").exists()


def test_a_place_where_no_database_can_be_made_is_a_problem(cli, indexed: LocalSite, tmp_path: Path):
    """Before there is one, too; nothing is made. Root may write everywhere but below a file."""
    file, locked = tmp_path / "file", tmp_path / "locked"
    file.touch()
    locked.mkdir(mode=0o500)
    for place, reason in ((file, "is no folder"), (locked, "isn't writable"), (tmp_path / "free", "")):
        done = cli("check", DOCS_DATABASE=f"sqlite:///{place}/below/kept.db")
        refused = bool(reason) and not (place == locked and os.geteuid() == 0)
        assert done.code == refused, done.out
        assert (f"kept.db can't be made: {place} {reason}" in done.out) == refused
        assert not (place / "below").exists()


def test_an_index_is_described(cli, indexed: LocalSite):
    """Pages by language and collection, chunks, age, embedder; all well is exit code 0."""
    described = yaml.safe_load(cli("check").ok.split("\n\n")[2])
    assert "problems" not in described
    findings = json.loads(cli("check", "--json").out)
    assert described["index"] == findings["index"]
    assert findings["ok"] is True
    assert findings["index"]["pages_by_language"] == {"en": 3}
    assert findings["index"]["pages_by_collection"] == {"docs": 3}
    assert (findings["index"]["embedder"], findings["index"]["dimension"]) == (WORDS, WORDS_SIZE)
    assert findings["index"]["age_hours"] < 1


def settings_of(out: str) -> dict[str, list[str]]:
    """The rows of the settings, by name: value and place."""
    rows = (re.split(r"  +", line) for line in out.split("\n\n")[1].splitlines()[1:])
    return {name: rest for name, *rest in rows}


def test_it_begins_with_the_verdict(cli, indexed: LocalSite, llm: FakeLLM):
    """One line: works, or the first problem with its remedy and the number of all; the same as JSON."""
    assert cli("check").out.startswith(
        "Works: 3 pages are indexed, and answers quote them, because no language model is set.\n"
    )
    assert cli("check", **model_at(llm)).out.startswith(
        "Works: 3 pages are indexed, and scripted writes the answers.\n"
    )
    llm.reply = lambda _: Reply("overloaded", status=500)
    findings = json.loads(cli("check", "--json", **model_at(llm), DOCS_HOST="0.0.0.0").out)
    assert findings["verdict"].startswith("Doesn't work: service: DOCS_HOST=0.0.0.0 lets other machines ask")
    assert findings["verdict"].endswith("(2 problems in all)")
    assert [problem.partition(":")[0] for problem in findings["problems"]] == ["service", "language model"]
    shutil.rmtree("data")
    assert cli("check").out.startswith("Doesn't work: index: Nothing has been indexed yet: run `docs-assistant ingest`")
    wrong = json.loads((done := cli("check", "--json", DOCS_PORT="x", DOCS_TOP_K="0")).out)
    assert (done.code, wrong["ok"], len(wrong["problems"])) == (1, False, 2)
    assert "DOCS_PORT has value 'x'" in " ".join(wrong["problems"])


def test_settings_that_differ_are_shown_with_the_place_where_they_are_written(cli):
    """Secrets aren't; brackets in a value are printed as they are. JSON has the same."""
    Path("docs-assistant.toml").write_text("[retrieval]\ntop_k = 7\n[server]\nport = 8000\n")
    Path(".env").write_text("DOCS_TUNING__VECTOR_WEIGHT='{\"cs\": 0.4}'\n")
    Path("key").write_text("secret-1\n")
    model = {"DOCS_LLM_URL": "http://127.0.0.1:1/v1", "DOCS_LLM_MODEL": "m", "DOCS_LLM_KEY_FILE": "key"}
    given = {"DOCS_USER_AGENT": "[/bold] reader", "DOCS_TUNING__EXACT": "on", **model}
    done = cli("check", **given)
    assert settings_of(done.out) == {
        "DOCS_USER_AGENT": ["[/bold] reader", "environment"],
        "DOCS_LLM_URL": ["http://127.0.0.1:1/v1", "environment"],
        "DOCS_LLM_MODEL": ["m", "environment"],
        "DOCS_LLM_KEY": ["(set)", "key: DOCS_LLM_KEY_FILE"],
        "DOCS_EMBEDDING_MODEL": [WORDS_SETTING, "environment"],
        "DOCS_TOP_K": ["7", "docs-assistant.toml: retrieval.top_k"],
        "DOCS_TUNING__VECTOR_WEIGHT": ['{"cs": 0.4}', ".env: DOCS_TUNING__VECTOR_WEIGHT"],
        "DOCS_TUNING__EXACT": ["true", "environment"],
    }
    shown = json.loads(cli("check", "--json", **given).out)["settings"]
    assert shown["DOCS_TOP_K"] == {"value": 7, "from": "docs-assistant.toml: retrieval.top_k"}
    assert list(shown) == list(settings_of(done.out))
    assert "secret-1" not in done.out + json.dumps(shown)


def test_all_settings_are_listed_as_one_would_write_them(cli):
    names = [NAMES.variable(name) for name in FIELDS]
    rows = settings_of(cli("check", "--all", DOCS_PORT="8000").out)
    assert list(rows) == names
    assert rows["DOCS_LANGUAGES"] == ["cs en", "default"]
    assert rows["DOCS_TUNING__EXACT"] == ["false", "default"]
    assert rows["DOCS_PORT"] == ["8000", "environment"]
    assert rows["DOCS_LLM_ARGS"] == ["default"]
    assert list(json.loads(cli("check", "--all", "--json").out)["settings"]) == names


def test_another_embedder_than_the_index_s_is_a_problem(cli, indexed: LocalSite, llm: FakeLLM):
    """The message names both and the remedy."""
    settings = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "eight"}
    findings = json.loads((done := cli("check", "--json", **settings)).out)
    assert done.code == 1
    assert WORDS in findings["index_problem"]
    assert "index the sites again" in findings["index_problem"]
    assert findings["embedder"]["problem"] == ""
    assert "eight" in findings["embedder"]["name"]


def test_models_that_do_not_answer_are_problems(cli, indexed: LocalSite, llm: FakeLLM):
    """Each is reported under its own name, and so is one that answers."""
    assert "language_model: {name: scripted}" in cli("check", **model_at(llm)).out
    llm.reply, llm.embedding_status = lambda _: Reply("overloaded", status=500), 500
    findings = json.loads((done := cli("check", "--json", **model_at(llm))).out)
    assert done.code == 1
    assert "500" in findings["language_model"]["problem"]
    shown = cli("check", DOCS_EMBEDDING_URL=llm.url, DOCS_EMBEDDING_MODEL="eight")
    assert (shown.code, "answered 500" in shown.out) == (1, True)


@pytest.mark.parametrize(
    ("field", "instead"),
    [
        ("max_tokens", "sent as max_completion_tokens"),
        ("temperature", "left out"),
        ("stream_options", "left out"),
    ],
)
def test_what_the_model_s_server_refuses_is_shown(cli, indexed: LocalSite, llm: FakeLLM, field: str, instead: str):
    """With what is done instead; it is no problem."""
    refusal = json.dumps({"error": {"message": f"Unsupported parameter: '{field}'", "param": field}})
    llm.reply = lambda body: Reply("", status=400, raw=refusal) if field in body else Reply("OK")
    findings = json.loads(cli("check", "--json", **model_at(llm)).ok)
    assert findings["language_model"] == {"name": "scripted", "problem": "", "refused": {field: instead}}
    assert f"{field}: {instead}" in cli("check", **model_at(llm)).ok


def test_a_server_that_streams_in_another_form_is_a_problem(cli, indexed: LocalSite, llm: FakeLLM):
    """Although its whole answers are right."""
    line = '{"choices": [{"delta": {"content": "OK"}}]}\n'
    llm.reply = lambda body: Reply("", raw=line, finish=None) if body.get("stream") else Reply("OK")
    done = cli("check", **model_at(llm))
    assert (done.code, "NDJSON" in done.out) == (1, True)


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
    assert (done.code, "index.json is damaged" in done.out) == (1, True)


def test_a_wrong_splitter_or_reader_is_a_problem(cli, indexed: LocalSite):
    """Before a night fails because of it; nothing is read."""
    done = cli("check", DOCS_SPLITTER="no_such_package:Parser")
    assert done.code == 1
    assert "indexing: DOCS_SPLITTER=no_such_package:Parser: there is no module" in done.out.replace("\n    ", " ")
    Path("sites.toml").write_text('[[source]]\nurl = "https://a.example.org/"\nreader = "json:Nothing"\n')
    findings = json.loads(cli("check", "--json", DOCS_SOURCES="sites.toml").out)
    assert "reader=json:Nothing: json has no class Nothing" in findings["indexing_problem"]


def test_a_collection_without_pages_is_named_with_its_assistant(cli, index: Index, tmp_path: Path, monkeypatch):
    """Such an assistant finds less than its owner thinks: a problem, and exit code 1."""
    index.publish(page_with("/a", "one"), page_with("/b", "two", collection="blog"))
    file = tmp_path / "assistants.toml"
    monkeypatch.setenv("DOCS_ASSISTANTS", str(file))
    steps = 'steps = ["detect", "retrieve", "synthesize"]\n'
    for collections, lacking in ((["docs", "blog"], {}), (["docs", "handbok", "wiki"], {"some": ["handbok", "wiki"]})):
        some = f'[[assistant]]\nid = "some"\n{steps}collections = {json.dumps(collections)}\n'
        file.write_text(f'[[assistant]]\nid = "all"\n{steps}{some}', encoding="utf-8")
        assert json.loads(cli("check", "--json").out)["collections_without_pages"] == lacking
        done = cli("check")
        problem = "some: it answers from handbok, wiki, where no page is indexed" in done.out
        assert (done.code, problem) == (int(bool(lacking)), bool(lacking))
