"""The same pages in a directory, in OpenSearch and behind a running service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.assistants.assembly import build
from app.core.settings import Settings
from app.routes.server import create_app
from docs_assistant.llama_index import DocsAssistantRetriever
from tests.app.conftest import *  # noqa: F403
from tests.app.routes.scripted import serving
from tests.docs_assistant.cli.stored_index import stored
from tests.docs_assistant.corpus import publish

KEY = "key-of-a-retriever"


@pytest.fixture(scope="package")
def directory(tmp_path_factory) -> str:
    """DOCS_STORE of the embedded index."""
    address = str(tmp_path_factory.mktemp("retriever") / "index")
    asyncio.run(publish(address))
    return address


@pytest.fixture(scope="package")
def opensearch() -> Iterator[str]:
    """DOCS_STORE of the index in OpenSearch."""
    with stored("opensearch", Path()) as index:
        asyncio.run(publish(index.address))
        yield index.address


@pytest.fixture(scope="package")
def service(directory: str) -> Iterator[str]:
    """The address of a service with a key, on the embedded index."""
    settings = Settings.load(None, store=directory, api_keys=(KEY,))
    with serving(create_app(build(settings), settings)) as url:
        yield url


@pytest.fixture(params=["directory", pytest.param("opensearch", marks=pytest.mark.opensearch), "service"])
def address(request) -> str:
    """Each of the three in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def open_retriever() -> Iterator[Callable[..., DocsAssistantRetriever]]:
    """Opens retrievers, and closes them at the end."""
    opened: list[DocsAssistantRetriever] = []

    def open_(address: str | Settings, **options) -> DocsAssistantRetriever:
        key = {"api_key": KEY} if str(address).startswith("http") else {}
        opened.append(DocsAssistantRetriever(address, **key | options))
        return opened[-1]

    yield open_
    for retriever in opened:
        retriever.close()
