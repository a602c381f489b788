"""An index of its own on the OpenSearch of the tests, for each test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from app.index.opensearch.store import OpenSearchStore
from tests.app.cli.stored_index import opensearch_address


@pytest.fixture
def address() -> str:
    return opensearch_address()


@pytest.fixture
async def http(address) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        yield client


@pytest.fixture
async def open_store(address, http) -> AsyncIterator[Callable[..., OpenSearchStore]]:
    """Opens an index of a name of its own; deletes it in the end."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    opened: list[OpenSearchStore] = []

    def open_(**values) -> OpenSearchStore:
        store = OpenSearchStore(address, **({"index": name} | values))
        opened.append(store)
        return store

    yield open_
    for store in opened:
        await store.close()
    for index in (await http.get(f"/{name}*/_alias")).json():
        await http.delete(f"/{index}")
    await http.delete(f"/_search/pipeline/{name}*")


@pytest.fixture
def store(open_store) -> OpenSearchStore:
    return open_store()
