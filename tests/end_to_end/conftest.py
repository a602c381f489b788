"""A service as a newcomer has it after `make run`, and a scripted language model beside it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.program import Program, service
from tests.fake_llm import FakeLLM, Reply
from tests.opensearch import opensearch_address, own_name


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


@pytest.fixture
def endless(llm: FakeLLM) -> dict[str, str]:
    """Settings of a model that writes and never ends, so that only a streamed answer can arrive."""
    reply = Reply("A generation is a state of the index [1]. " * 3, repeated=": ping\n\n", piece_delay=0.05)
    llm.reply = lambda body: reply if body.get("stream") else Reply("")
    return {
        "DOCS_LLM_URL": llm.url,
        "DOCS_LLM_MODEL": "m",
        "DOCS_LOG_CLIENT": "full",
        "DOCS_TRUSTED_PROXIES": "127.0.0.1",
    }


@pytest.fixture(scope="module")
def opensearch_index() -> Iterator[str]:
    """The address of an index on OpenSearch that only this module uses; whatever it makes is deleted."""
    with own_name("e2e") as name:
        yield f"{opensearch_address().replace('http', 'opensearch', 1)}/{name}"
