"""The OpenSearch that tests use."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest


def opensearch_address() -> str:
    """The server of the tests, without which they are skipped; in CI they fail."""
    address = os.environ.get("DOCS_TEST_OPENSEARCH", "").rstrip("/")
    if not address:
        message = "no OpenSearch: run `make opensearch` and set DOCS_TEST_OPENSEARCH=http://127.0.0.1:9200"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(message)
    return address


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
