"""`docs-assistant generations` and `rollback`, as typed, on each store."""

from __future__ import annotations

import json
from dataclasses import replace

from app.cli import main
from tests.app.cli.stored_index import RECIPE, page_with


def test_the_kept_generations_are_listed_newest_first(index, capsys):
    """One line for each, with time and recipe; one of them is live."""
    index.publish(page_with("/a", "one"))
    second = index.publish(page_with("/a", "one"), page_with("/b", "two", language="cs"))
    assert main(["generations"]) == 0
    heading, newest, older = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["generation", "state", "built"]
    fields = newest.split()
    assert fields[:5] == [str(second.id), "live", second.built_at, "2", "2"]
    for part in ("cs en", "wordllama-256 (256)", "s-1", "a-1"):
        assert part in newest
    assert older.split()[:2] == [str(second.id - 1), "kept"]


def test_the_list_as_json_says_which_is_live(index, capsys):
    """All data about each, for programs."""
    first, second = index.publish(page_with("/a", "one")), index.publish(page_with("/a", "two"))
    assert main(["generations", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(entry["id"], entry["live"]) for entry in listed] == [(second.id, True), (first.id, False)]
    assert listed[0]["recipe"] == {
        "embedder": "wordllama-256",
        "dimension": 256,
        "splitter": "s-1",
        "analyzer": "a-1",
        "summaries": "",
        "questions": "",
    }
    assert listed[0]["built_at"] == second.built_at


def test_rollback_makes_the_one_before_live_and_says_so(index, capsys):
    """What was published by mistake is no longer in the pages or in the list."""
    first = index.publish(page_with("/a", "good"))
    index.publish(page_with("/a", "bad"), page_with("/b", "bad too"))
    assert main(["rollback"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Generation {first.id} is live again: 1 pages, 1 chunks (en), built {first.built_at}")
    assert main(["pages", "--json"]) == 0
    assert [page["url"] for page in json.loads(capsys.readouterr().out)] == ["https://docs.example.org/a"]
    assert main(["generations", "--json"]) == 0
    assert [(entry["id"], entry["live"]) for entry in json.loads(capsys.readouterr().out)] == [(first.id, True)]


def test_rollback_without_an_earlier_generation_changes_nothing(index, capsys):
    """One line, exit code 1, and the live generation stays."""
    only = index.publish(page_with("/a", "one"))
    assert main(["rollback"]) == 1
    output = capsys.readouterr()
    assert (output.out, len(output.err.splitlines())) == ("", 1)
    assert output.err.startswith("docs-assistant: ")
    assert "generation" in output.err
    assert main(["generations", "--json"]) == 0
    assert [entry["id"] for entry in json.loads(capsys.readouterr().out)] == [only.id]


def test_rollback_to_another_embedder_is_refused(index, capsys):
    """The service would refuse to answer from it, so the error names the embedder to set, and nothing changes."""
    index.publish(page_with("/a", "one"), recipe=replace(RECIPE, embedder="old-model"))
    second = index.publish(page_with("/a", "two"))
    assert main(["rollback"]) == 1
    assert "was built with the embedder old-model, but wordllama-256 is set" in capsys.readouterr().err
    assert main(["generations", "--json"]) == 0
    newest = json.loads(capsys.readouterr().out)[0]
    assert (newest["id"], newest["live"]) == (second.id, True)


def test_before_the_first_run_there_is_nothing_to_show(index, capsys):
    """An empty store is one line and exit code 1, not an empty list."""
    for command in ("generations", "generations --json", "rollback", "pages"):
        assert main(command.split()) == 1
        output = capsys.readouterr()
        assert output.out == ""
        assert "indexed" in output.err
