"""`docs-assistant eval` on a real index."""

import json
from pathlib import Path

import pytest

from tests.ingestion.local_site import LocalSite


@pytest.fixture
def questions() -> str:
    row = {"lang": "en", "variant": "1"}
    rows = [row | {"id": f"{n}", "question": f"What does gauge {n} measure?", "doc": f"gauge-{n}.md"} for n in range(3)]
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return "questions.jsonl"


def test_retrieval_is_measured_and_compared(cli, indexed: LocalSite, questions: str):
    """Table and file; a result compared with itself has no difference."""
    shown = cli("eval", "retrieval", questions, "--out", "a.json")
    assert shown.code == 0, shown.err
    assert "MRR@5" in shown.out
    result = json.loads(Path("a.json").read_text("utf-8"))
    assert len(result["outcomes"]) == 3
    assert result["rows"][0]["measures"]["rr"]["mean"] == 1.0
    compared = cli("eval", "compare", "a.json", "a.json")
    assert compared.code == 0
    assert "3 questions in both" in compared.out


def test_an_empty_index_ends_with_1(cli, questions: str):
    """There is nothing to measure."""
    done = cli("eval", "retrieval", questions)
    assert done.code == 1
    assert "docs-assistant ingest" in done.out + done.err
