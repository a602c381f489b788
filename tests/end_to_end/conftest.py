"""A service as a newcomer has it after `make run`, and a scripted language model beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.program import Program, service


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these start real servers."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.server)


@pytest.fixture(scope="session")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """`docs-assistant run` with nothing configured, ready: our own documentation is indexed."""
    with service(tmp_path_factory.mktemp("newcomer"), "run") as running:
        yield running


@pytest.fixture
def indexed(newcomer: Program, tmp_path: Path) -> Path:
    """A directory whose `data/` is a copy of the newcomer's index, without the conversations that others had with it."""
    ignored = shutil.ignore_patterns("conversations.db*")
    shutil.copytree(newcomer.folder / "data", tmp_path / "data", ignore=ignored)
    return tmp_path
