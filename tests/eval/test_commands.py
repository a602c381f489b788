"""`eval retrieval` and `eval compare` as they are typed."""

import json
from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.core.settings import Settings
from eval.measure.result import load_result
from tests.eval.conftest import command

SITE = "https://docs.example.org"
TEXTS = {f"{SITE}/en/volumes": "storage claim size", f"{SITE}/en/login": "login password token expiry"}
ROWS = [
    {"id": "a", "lang": "en", "variant": 1, "question": "claim size", "doc": "en/volumes.md"},
    {"id": "b", "lang": "en", "variant": 4, "question": "password token", "doc": "en/login.md"},
    {"id": "c", "lang": "cs", "variant": 4, "question": "heslo token", "doc": "en/login.md", "cross": True},
]


class Bench:
    """Runs a command line with a finder of this test, and keeps how it was opened."""

    def __init__(self, finder, folder: Path) -> None:
        self.finder = finder
        self.folder = folder
        self.settings = Settings.load(env_file=None)
        self.overrides: Mapping[str, Any] = {}

    @asynccontextmanager
    async def open_finder(self, overrides):
        self.overrides = overrides
        yield self.finder

    async def __call__(self, *arguments: str | Path) -> int:
        return await command(self.settings, *arguments, open_finder=self.open_finder)


@pytest.fixture
def bench(lookup, tmp_path) -> Bench:
    return Bench(lookup(TEXTS), tmp_path)


@pytest.fixture
def questions(write_jsonl) -> Path:
    return write_jsonl("q.jsonl", *ROWS)


async def test_retrieval_prints_a_table(bench, questions, capsys):
    assert await bench("retrieval", questions) == 0
    out = capsys.readouterr().out
    assert "MRR@5" in out
    assert "en 4 keywords" in out
    assert "cs cross" in out
    assert bench.overrides == {}
    bench.finder.broken = frozenset({"password token"})
    assert await bench("retrieval", questions) == 1, "a script sees that the table isn't whole"
    assert "1 searches failed" in capsys.readouterr().out


async def test_the_saved_file_says_how_it_was_measured(bench, questions, tmp_path):
    assert await bench("retrieval", questions, "--out", tmp_path / "a.json") == 0
    saved = load_result(tmp_path / "a.json")
    assert (saved.config["set"], len(saved.config["code"])) == ("q.jsonl", 12)
    assert saved.row("en").measures["rr"].mean == 1


async def test_options_choose_questions_and_passages(bench, questions, tmp_path):
    """Fewer questions, deeper rankings: the assistant is opened accordingly."""
    await bench("retrieval", questions, "--limit", "1", "--out", tmp_path / "a.json")
    assert len(load_result(tmp_path / "a.json").outcomes) == 1
    for words, overrides in (
        (["--k", "10"], {"top_k": 10}),
        (["--k", "3"], {}),
        (["--deep", "--no-model"], {"top_k": 40, "llm_url": "", "llm_class": ""}),
    ):
        await bench("retrieval", questions, *words)
        assert bench.overrides == overrides


async def test_documents_of_another_site_are_mapped(bench, write_jsonl, capsys):
    """Without --doc-map the set is refused with exit code 2, with it all is found."""
    path = write_jsonl("q.jsonl", *({**row, "doc": f"src/{row['doc']}"} for row in ROWS))
    assert await bench("retrieval", path) == 2
    assert "--doc-map" in capsys.readouterr().err
    assert await bench("retrieval", path, "--doc-map", "^src/=/") == 0
    assert "1.00 1.0–1.0" in capsys.readouterr().out


async def test_compare_reads_two_results(bench, questions, lookup, capsys, tmp_path):
    """A search that lost a page shows as worse."""
    await bench("retrieval", questions, "--out", tmp_path / "a.json")
    bench.finder = lookup({**TEXTS, f"{SITE}/en/login": "nothing"})
    await bench("retrieval", questions, "--out", tmp_path / "b.json")
    capsys.readouterr()
    assert await bench("compare", tmp_path / "a.json", tmp_path / "b.json") == 0
    assert "1 → –  [en 4] password token" in capsys.readouterr().out


async def test_compare_refuses_other_sets_with_2(bench, questions, write_jsonl, capsys, tmp_path):
    """Unless what they share is asked for."""
    await bench("retrieval", questions, "--out", tmp_path / "a.json")
    await bench("retrieval", write_jsonl("fewer.jsonl", *ROWS[:2]), "--out", tmp_path / "b.json")
    assert await bench("compare", tmp_path / "a.json", tmp_path / "b.json") == 2
    assert "1 are only in A" in capsys.readouterr().err
    assert await bench("compare", tmp_path / "a.json", tmp_path / "b.json", "--common") == 0
    assert "1 questions that only one of the two has" in capsys.readouterr().out


async def test_wrong_input_ends_with_2_before_anything_is_asked(bench, questions, capsys):
    """One line on standard error, no question asked."""
    for words, message in (
        (["missing.jsonl"], "missing.jsonl"),
        ([questions, "--doc-map", "("], "--doc-map '('"),
        ([questions, "--out", bench.folder], "--out"),
        ([questions, "--out", bench.folder / "missing/a.json"], "--out"),
        ([questions, "--html", bench.folder / "missing/a.html"], "--html"),
    ):
        assert await bench("retrieval", *words) == 2
        assert message in capsys.readouterr().err
    assert bench.finder.asked == []


async def test_the_store_password_is_not_kept(bench, questions, tmp_path):
    """A result is passed on and put into repositories."""
    store = "opensearchs://admin:secret@search.example.org:9200/docs"
    bench.settings = Settings.load(env_file=None, store=store, llm_key="secret")
    await bench("retrieval", questions, "--out", tmp_path / "a.json")
    saved = (tmp_path / "a.json").read_text("utf-8")
    assert "secret" not in saved
    assert "search.example.org:9200/docs" in saved


async def test_conversations_are_measured_as_asked_and_spelled_out(bench, write_jsonl, capsys, tmp_path):
    """A table with both forms and their difference, as a file and as a page too; no conversation is an error."""
    messages = [{"role": "user", "content": text} for text in ("claim", "how big")]
    row = {"id": "a", "lang": "en", "messages": messages, "standalone": "claim size", "doc": "en/volumes"}
    path = write_jsonl("c.jsonl", row)
    assert await bench("conversations", path, "--out", tmp_path / "c.json", "--html", tmp_path / "c.html") == 0
    assert "in the conversation minus spelled out" in capsys.readouterr().out
    assert load_result(tmp_path / "c.json").contestants == ("in the conversation", "spelled out")
    assert "in the conversation minus spelled out" in (tmp_path / "c.html").read_text(encoding="utf-8")
    assert await bench("conversations", write_jsonl("q.jsonl", *ROWS)) == 2


async def test_refusals_are_measured_with_their_curve(bench, questions, write_jsonl, capsys, tmp_path):
    """What the pages don't answer beside what they do; in the terminal, as JSON and as a page."""
    rows = [{"id": f"u{i}", "lang": "en", "kind": "near", "question": f"teleport {i}"} for i in range(3)]
    wanted = [write_jsonl("u.jsonl", *rows), "--answerable", questions]
    assert await bench("refusals", *wanted, "--out", tmp_path / "r.json", "--html", tmp_path / "r.html") == 0
    assert "100 % of the unanswerable are refused, 0.0 % of the answerable" in capsys.readouterr().out
    assert await bench("refusals", wanted[0]) == 2
    assert "need each other" in capsys.readouterr().err
    kept = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert kept["now"] == {"threshold": 0.32, "recall": 1.0, "over_refusal": 0.0}
    assert kept["config"]["answerable"] == "q.jsonl"
    assert "Refusals: u.jsonl" in (tmp_path / "r.html").read_text(encoding="utf-8")


async def test_compare_reads_refusals_and_conversations(bench, questions, write_jsonl, capsys, tmp_path):
    """As they were saved; two kinds together are refused."""
    none = write_jsonl(
        "u.jsonl", *({"id": f"u{i}", "lang": "en", "kind": "near", "question": f"teleport {i}"} for i in "12")
    )
    messages = [{"role": "user", "content": text} for text in ("claim", "how big")]
    row = {"id": "a", "lang": "en", "messages": messages, "standalone": "claim size", "doc": "en/volumes"}
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    await bench("refusals", none, "--answerable", questions, "--out", a)
    await bench("conversations", write_jsonl("c.jsonl", row), "--no-model", "--out", b)
    capsys.readouterr()
    assert await bench("compare", a, a) == 0
    assert "refusal, unanswerable" in capsys.readouterr().out
    assert await bench("compare", b, b) == 0
    assert await bench("compare", a, b) == 2
    assert "a.json is a result of `eval refusals`" in capsys.readouterr().err
