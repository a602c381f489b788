"""`docs-assistant check`: the collections that assistants answer from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_a_collection_without_pages_is_named_with_its_assistant(cli, handbook):
    """Such an assistant finds less than its owner thinks: a problem, and exit code 1."""
    handbook("docs", "handbok", "wiki")
    findings = json.loads(cli("check", "--json").out)
    assert findings["collections_without_pages"] == {"handbook": ["handbok", "wiki"]}
    done = cli("check")
    assert done.code == 1
    assert "PROBLEM: handbook answers from handbok, wiki, where no page is indexed" in done.out


def test_collections_with_pages_are_well(cli, handbook):
    """Exit code 0, and no word about collections."""
    handbook("docs", "blog")
    assert json.loads(cli("check", "--json").ok)["collections_without_pages"] == {}
    assert "PROBLEM" not in cli("check").ok
