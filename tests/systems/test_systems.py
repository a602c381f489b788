"""The list of what the published systems describe: nothing leaves it unnoticed, and each item has a test that exists."""

import tomllib
from pathlib import Path

import pytest

from tests.systems.ran import SYSTEMS, items, missing_tests, unproved

ROOT = Path(__file__).parents[2]
COUNTS = {"moodibot": 32, "ai_popper": 17, "aware": 27, "regassist": 24, "hpc": 45}
"""How many items each system has had, with those that a decision dropped."""


@pytest.mark.parametrize("system", COUNTS)
def test_a_line_leaves_only_by_a_decision(system: str):
    """The ids go from 1 to the number of items; one that isn't listed names the page that says why."""
    table = tomllib.loads(SYSTEMS.read_text("utf-8"))[system]
    listed = [item["id"] for item in table["items"]]
    prefix = listed[0].rstrip("0123456789")
    assert len(set(listed)) == len(listed)
    assert not set(listed) & set(table["dropped"])
    assert {*listed, *table["dropped"]} == {f"{prefix}{number}" for number in range(1, COUNTS[system] + 1)}
    for decision in table["dropped"].values():
        assert (ROOT / "docs/decisions" / decision).is_file(), decision


def test_each_item_has_a_place_and_a_test_that_exists():
    """The test is a function of that file; what is planned has none, and no line."""
    assert missing_tests() == []
    for item in items():
        for place in item["where"].split(", "):
            assert next(ROOT.glob(place), None), f"{item['id']}: {place}"


def test_a_test_that_was_skipped_or_failed_proves_nothing(tmp_path: Path):
    """Items whose test isn't among those that passed are named, each with its test."""
    first, second, *_ = items()
    passed = [f"tests/{item['test']}" for item in items() if item["test"] != first["test"]]
    record = tmp_path / "passed"
    record.write_text("\n".join([*passed, f"tests/{second['test']}[some-case]"]), "utf-8")
    named = {line.split(":")[0] for line in unproved(record)}
    assert first["id"] in named
    assert named == {item["id"] for item in items() if item["test"] == first["test"]}
