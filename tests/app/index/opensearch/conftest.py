"""An index of its own on the OpenSearch of the tests, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from app.index.opensearch.store import OpenSearchStore
from tests.opensearch import opensearch_address, own_name, store_at


@pytest.fixture
def address() -> str:
    return opensearch_address()


@pytest.fixture
async def http(address) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        yield client


@pytest.fixture
async def open_store(address) -> AsyncIterator[Callable[..., OpenSearchStore]]:
    """Opens an index of a name of its own; deletes it in the end."""
    opened: list[OpenSearchStore] = []
    with own_name() as name:

        def open_(**values) -> OpenSearchStore:
            store = store_at(address, **({"index": name} | values))
            opened.append(store)
            return store

        yield open_
        for store in opened:
            await store.close()


@pytest.fixture
def store(open_store) -> OpenSearchStore:
    return open_store()
