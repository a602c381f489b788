"""Every mistake of the table ends as it should and is told in words that help; nothing is a traceback."""

from pathlib import Path

import pytest

from tests.mistakes.table import MISTAKES
from tests.mistakes.world import Mistake, World, world


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory):
    """One site, model and index for all rows."""
    with world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.mark.parametrize(
    "title", [pytest.param(title, marks=[pytest.mark.slow] * (title == "Processes")) for title in MISTAKES]
)
def test_each_mistake_is_told_with_what_to_do(places: World, title: str, tmp_path: Path):
    """Exit code or status, and the essential part of the message; all rows that fail are shown together."""
    failed = []
    for number, row in enumerate(MISTAKES[title]):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = row.make(places, folder)
        if said.code != row.code or places.fill(row.said) not in said.text or "Traceback" in said.text:
            failed.append((row.what, said.code, said.text))
    assert failed == []


def test_there_are_at_least_forty_mistakes():
    """And each is there once."""
    rows: list[Mistake] = [row for rows in MISTAKES.values() for row in rows]
    assert len({row.what for row in rows}) == len(rows) >= 40
