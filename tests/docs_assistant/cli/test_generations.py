"""`docs-assistant generations` and `rollback`, as typed."""

import json
from dataclasses import asdict, replace

import pytest

from tests.docs_assistant.cli.stored_index import RECIPE, page_with
from tests.fakes import WORDS

pytestmark = pytest.mark.parametrize("index", ["embedded"], indirect=True)


def test_the_kept_generations_are_listed_newest_first(cli, index):
    """One line for each, with time and recipe; one of them is live."""
    index.publish(page_with("/a", "one"))
    second = index.publish(page_with("/a", "one"), page_with("/b", "two", language="cs"))
    heading, newest, older = cli("generations").ok.splitlines()
    assert heading.split()[:3] == ["generation", "state", "built"]
    fields = newest.split()
    assert fields[:5] == [str(second.id), "live", second.built_at, "2", "2"]
    for part in ("cs en", f"{WORDS} (128)", "s-1", "a-1"):
        assert part in newest
    assert older.split()[:2] == [str(second.id - 1), "kept"]


def test_the_list_as_json_says_which_is_live(cli, index):
    """All data about each, for programs."""
    first, second = index.publish(page_with("/a", "one")), index.publish(page_with("/a", "two"))
    listed = json.loads(cli("generations", "--json").ok)
    assert [(entry["id"], entry["live"]) for entry in listed] == [(second.id, True), (first.id, False)]
    assert listed[0]["recipe"] == asdict(RECIPE)
    assert listed[0]["built_at"] == second.built_at


def test_rollback_makes_the_one_before_live_and_says_so(cli, index):
    """What was published by mistake is no longer in the pages or in the list."""
    first = index.publish(page_with("/a", "good"))
    index.publish(page_with("/a", "bad"), page_with("/b", "bad too"))
    said = cli("rollback").ok
    assert said.startswith(f"Generation {first.id} is live again: 1 pages, 1 chunks (en), built {first.built_at}")
    assert [page["url"] for page in json.loads(cli("pages", "--json").ok)] == ["https://docs.example.org/a"]
    assert [(entry["id"], entry["live"]) for entry in json.loads(cli("generations", "--json").ok)] == [(first.id, True)]


def test_rollback_to_another_embedder_is_refused(cli, index):
    """The service would refuse to answer from it, so the error names the embedder to set, and nothing changes."""
    index.publish(page_with("/a", "one"), recipe=replace(RECIPE, embedder="old-model"))
    second = index.publish(page_with("/a", "two"))
    done = cli("rollback")
    assert (done.code, f"was built with the embedder old-model, but {WORDS} is set" in done.err) == (1, True)
    newest = json.loads(cli("generations", "--json").ok)[0]
    assert (newest["id"], newest["live"]) == (second.id, True)


def test_before_the_first_run_there_is_nothing_to_show(cli, index):
    """An empty store is one line and exit code 1, not an empty list."""
    for command in ("generations", "generations --json", "rollback", "pages"):
        done = cli(*command.split())
        assert (done.code, done.out, "indexed" in done.err) == (1, "", True)
