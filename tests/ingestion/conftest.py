"""A local site and an empty index for every test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.core.settings import Settings
from ingestion.crawl.fetch import Fetcher
from tests.ingestion.git_server import GitServer, git_server
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite, local_site


@pytest.fixture
def site() -> Iterator[LocalSite]:
    """A real HTTP server on loopback."""
    with local_site() as running:
        yield running


@pytest.fixture
async def fetcher(site: LocalSite) -> AsyncIterator[Fetcher]:
    """A fetcher that may ask the local site and doesn't wait long between tries."""
    async with Fetcher(Settings.load(None, crawl_timeout=60, crawl_max_bytes=20_000), retry_wait=0.01) as made:
        made.allow([site.url])
        yield made


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Index]:
    """An empty index of small chunks."""
    async with Index(tmp_path / "data", chunk_size=600, embedding_batch=4) as made:
        yield made


@pytest.fixture
def served(tmp_path: Path) -> Iterator[GitServer]:
    """The repositories below `served` over real HTTP."""
    with git_server(tmp_path / "served") as running:
        yield running
