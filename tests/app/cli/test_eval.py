"""`docs-assistant eval` on a real index."""

from __future__ import annotations

import json
from pathlib import Path

import lxml.html
import pytest

from tests.app.cli.stored_index import Index
from tests.fake_llm import FakeLLM
from tests.ingestion.local_site import LocalSite


@pytest.fixture
def questions() -> str:
    row = {"lang": "en", "variant": "1"}
    rows = [row | {"id": f"{n}", "question": f"What does gauge {n} measure?", "doc": f"gauge-{n}.md"} for n in range(3)]
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


def test_the_picture_of_the_pages_takes_no_embedding(cli, index: Index, site: LocalSite, llm: FakeLLM, questions: str):
    """The index has the vectors: to embed 400 pages again took 9 minutes on a small machine. Only questions are embedded."""
    embedder = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "eight"}
    done = cli("ingest", f"{site.url}/sitemap.xml", **embedder)
    assert done.code == 0, done.err
    llm.embedded.clear()
    done = cli("eval", "retrieval", questions, "--html", "page.html", **embedder)
    assert done.code == 0, done.err
    asked = [text for texts in llm.embedded for text in texts]
    assert asked
    assert not [text for text in asked if not text.endswith("measure?")], asked
    page = lxml.html.document_fromstring(Path("page.html").read_text("utf-8"))
    assert len(page.xpath("//*[contains(@class, 'spot')] | //circle")) >= 3
