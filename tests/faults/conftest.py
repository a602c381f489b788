"""A rig on each store. All of these tests need a server of some kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.threads import llm_in_a_thread
from tests.fake_llm import FakeLLM
from tests.faults.places import PLACES
from tests.faults.rig import Rig
from tests.ingestion.local_site import local_site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They take seconds, so `make test` leaves them to `make test-all`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.server)
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def llm() -> Iterator[FakeLLM]:
    """An embedder behind real HTTP that keeps what it was sent."""
    with llm_in_a_thread() as running:
        yield running


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def rig(request: pytest.FixtureRequest, tmp_path: Path, llm: FakeLLM) -> Iterator[Rig]:
    """A site, an embedder, and an empty store."""
    with PLACES[request.param](tmp_path) as place, local_site() as site:
        made = Rig(site, llm, place, tmp_path)
        yield made
        made.end()


@pytest.fixture
def small_batches(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a small site embedded and written in several pieces, as a large one is."""
    rig.batch = 2
    monkeypatch.setattr("app.index.embedded.draft.BATCH", 6)
    monkeypatch.setattr("app.index.opensearch.writing.BATCH_ROWS", 6)
