"""A service as a newcomer has it after `make run`, and a scripted language model beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.program import Program, service
from tests.end_to_end.threads import llm_in_a_thread
from tests.fake_llm import FakeLLM, Reply


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
    """A directory whose `data/` is a copy of the newcomer's index."""
    shutil.copytree(newcomer.folder / "data", tmp_path / "data")
    return tmp_path


@pytest.fixture(scope="session")
def running_llm() -> Iterator[FakeLLM]:
    """A scripted OpenAI-compatible server in a thread of its own, so that tests may block."""
    with llm_in_a_thread() as llm:
        yield llm


@pytest.fixture
def llm(running_llm: FakeLLM) -> FakeLLM:
    """The same server, forgetful of what earlier tests told it."""
    running_llm.calls.clear()
    running_llm.embedded.clear()
    running_llm.cancelled, running_llm.embedding_status = 0, 200
    running_llm.reply = lambda _: Reply()
    return running_llm
