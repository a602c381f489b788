"""For all tests: no setting of the machine leaks in, and no connection leaves it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings of the person who runs the tests don't count; the address of a test OpenSearch does."""
    for name in list(os.environ):
        if name.startswith(("DOCS_", "OTEL_")) and not name.startswith("DOCS_TEST_"):
            monkeypatch.delenv(name)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)  # a .env or data/ of the checkout doesn't count either


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A command's log goes to this test's standard error, which is closed after it: later tests don't write there."""
    yield
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler:
            root.removeHandler(handler)


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to another machine fails the test that tries it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6} and not str(address[0]).startswith(
            ("127.", "::1", "localhost")
        ):
            raise AssertionError(f"a test tried to reach {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def shared() -> Path:
    """The folder with real corpora beside the checkout; the test skips where there is none."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the shared corpora in {SHARED}")
    return SHARED
