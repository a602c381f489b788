"""The stores that the contract suite runs on: those of `OPENERS`, and the class that DOCS_TEST_STORE names as `module:Class`."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from app.core.settings import Settings
from app.index import open_store as open_index
from app.index.protocols import Store
from tests.opensearch import opensearch_address, own_name, store_at

OpenStore = Callable[[], Awaitable[Store]]


@asynccontextmanager
async def embedded(directory: Path) -> AsyncIterator[OpenStore]:
    from app.index.embedded.store import EmbeddedStore

    async with AsyncExitStack() as stores:

        async def open_store() -> Store:
            store = EmbeddedStore(directory / "index", keep=2)
            stores.push_async_callback(store.close)
            return store

        yield open_store


@asynccontextmanager
async def opensearch(directory: Path) -> AsyncIterator[OpenStore]:
    address = opensearch_address()
    with own_name() as name:
        async with AsyncExitStack() as stores:

            async def open_store() -> Store:
                store = store_at(address, name, keep=2, timeout=120.0)
                stores.push_async_callback(store.close)
                return store

            yield open_store


@asynccontextmanager
async def named(directory: Path) -> AsyncIterator[OpenStore]:
    settings = Settings.load(None, store=os.environ["DOCS_TEST_STORE"])
    async with AsyncExitStack() as stores:

        async def open_store() -> Store:
            store = open_index(settings)
            stores.push_async_callback(store.close)
            return store

        yield open_store


OPENERS = {"embedded": embedded, "opensearch": opensearch}
if os.environ.get("DOCS_TEST_STORE"):
    OPENERS["named"] = named


@pytest.fixture(
    params=[pytest.param(kind, marks=[pytest.mark.opensearch] * (kind == "opensearch")) for kind in OPENERS]
)
async def open_store(request, tmp_path) -> AsyncIterator[OpenStore]:
    """Opens the same index once more each time it is called, as another process would."""
    async with OPENERS[request.param](tmp_path) as opener:
        yield opener


@pytest.fixture
async def store(open_store) -> Store:
    """An empty index."""
    return await open_store()
