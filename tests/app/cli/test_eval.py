"""`docs-assistant eval` on a real index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ingestion.local_site import LocalSite


@pytest.fixture
def questions() -> str:
    rows = [
        {
            "id": str(n),
            "lang": "en",
            "variant": "1",
            "question": f"What does gauge {n} measure?",
            "doc": f"gauge-{n}.md",
        }
        for n in range(3)
    ]
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return "questions.jsonl"


def test_retrieval_is_measured_and_compared(cli, indexed: LocalSite, questions: str):
    """Table, JSON and the kept file; a result compared with itself has no difference."""
    shown = cli("eval", "retrieval", questions, "--out", "a.json")
    assert shown.code == 0, shown.err
    assert "MRR@5" in shown.out
    result = json.loads(cli("eval", "retrieval", questions, "--json").out)
    assert result["n"] == 3
    assert result["unmatched_questions"] == 0
    assert result["rows"][0]["measures"]["rr"]["mean"] == 1.0
    compared = cli("eval", "compare", "a.json", "a.json", "--json")
    assert compared.code == 0
    assert json.loads(compared.out)


def test_invalid_input_is_reported_with_exit_code_2(cli, indexed: LocalSite, questions: str):
    """A message, no table, no traceback."""
    Path("broken.jsonl").write_text("{", "utf-8")
    for arguments in (
        ("retrieval", "missing.jsonl"),
        ("retrieval", "broken.jsonl"),
        ("retrieval", questions, "--known-only"),
        ("retrieval", questions, "--doc-map", "no rule"),
        ("compare", "missing.json", questions),
        ("compare", questions, questions),
    ):
        done = cli("eval", *arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert done.err.strip()
        assert "Traceback" not in done.err


def test_an_empty_index_ends_with_1(cli, questions: str):
    """There is nothing to measure."""
    done = cli("eval", "retrieval", questions)
    assert done.code == 1
    assert "docs-assistant ingest" in done.out + done.err
