"""A scripted language model behind real HTTP, and a client of ours for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from tests.docs_assistant.cli.stored_index import Index, stored
from tests.fake_llm import FakeLLM, fake_llm
from tests.postgres import Cluster, cluster


@pytest.fixture
async def llm() -> AsyncIterator[FakeLLM]:
    """The server, which keeps what it was sent."""
    async with fake_llm() as server:
        yield server


@pytest.fixture
async def model(llm: FakeLLM) -> AsyncIterator[Model]:
    """With more patience than a busy machine needs."""
    opened = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "m"))
    yield opened
    await opened.close()


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def index(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An empty index on each store, named in DOCS_STORE."""
    with stored(request.param, tmp_path) as made:
        monkeypatch.setenv("DOCS_STORE", made.address)
        yield made


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL cluster; the test skips if the programs aren't installed."""
    with cluster() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'conversations.db'}"
    running: Cluster = request.getfixturevalue("postgres")
    return running.new_database()
