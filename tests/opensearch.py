"""The OpenSearch that tests use."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.index.opensearch.connection import Layout, parse
from app.index.opensearch.store import OpenSearchStore


def opensearch_address() -> str:
    """The server of the tests, without which they are skipped; in CI they fail."""
    address = os.environ.get("DOCS_TEST_OPENSEARCH", "").rstrip("/")
    if not address:
        message = "no OpenSearch: run `make opensearch` and set DOCS_TEST_OPENSEARCH=http://127.0.0.1:9200"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(message)
    return address


def store_at(url: str, index: str = "docs", layout: Layout | None = None, **values: Any) -> OpenSearchStore:
    """The store at a URL as http://host:9200."""
    address = parse(f"{url.replace('http', 'opensearch', 1)}/{index}")
    return OpenSearchStore(replace(address, layout=layout or address.layout), **values)


@contextmanager
def own_name(prefix: str = "test") -> Iterator[str]:
    """A name for an index; whatever begins with it is deleted in the end."""
    address, name = opensearch_address(), f"{prefix}-{uuid.uuid4().hex[:12]}"
    try:
        yield name
    finally:
        with httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
            client.delete(f"/{name}*?expand_wildcards=all")
            client.delete(f"/_search/pipeline/{name}*")
