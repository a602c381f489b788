"""`docs-assistant check`: the collections that assistants answer from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli import main
from tests.app.cli.stored_index import Index, page_with

ASSISTANTS = """
[[assistant]]
id = "all"
steps = ["detect", "probe", "retrieve", "synthesize", "cite"]

[[assistant]]
id = "handbook"
steps = ["detect", "probe", "retrieve", "synthesize", "cite"]
collections = {collections}
"""


@pytest.fixture
def handbook(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Sets the collections of one of two assistants, over an index with the collections docs and blog."""
    index.publish(page_with("/a", "one"), page_with("/b", "two", collection="blog"))
    file = tmp_path / "assistants.toml"
    monkeypatch.setenv("DOCS_ASSISTANTS", str(file))

    def write(*collections: str) -> None:
        file.write_text(ASSISTANTS.format(collections=json.dumps(collections)), encoding="utf-8")

    return write


def test_a_collection_without_pages_is_named_with_its_assistant(handbook, capsys):
    """Such an assistant finds less than its owner thinks: a problem, and exit code 1."""
    handbook("docs", "handbok", "wiki")
    assert main(["check", "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)
    assert findings["collections_without_pages"] == {"handbook": ["handbok", "wiki"]}
    assert main(["check"]) == 1
    assert "PROBLEM: handbook answers from handbok, wiki, where no page is indexed" in capsys.readouterr().out


def test_collections_with_pages_are_well(handbook, capsys):
    """Exit code 0, and no word about collections."""
    handbook("docs", "blog")
    assert main(["check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collections_without_pages"] == {}
    assert main(["check"]) == 0
    assert "PROBLEM" not in capsys.readouterr().out
