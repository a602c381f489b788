"""An index of its own in a directory, for each test."""

from __future__ import annotations

import pytest

from app.index.embedded.store import EmbeddedStore


@pytest.fixture
async def store(tmp_path):
    opened = EmbeddedStore(tmp_path / "index", keep=2, grace=0)
    yield opened
    await opened.close()
