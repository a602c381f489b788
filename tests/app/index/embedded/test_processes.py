"""One writer at a time, and readers beside it."""

from __future__ import annotations

import pytest

from app.core.errors import StoreError
from tests.app.index.embedded.pages import RECIPE, publish


async def test_a_draft_that_fails_to_begin_gives_the_lock_back(store, tmp_path):
    await publish(store, {1: ("common one",)})
    content = (tmp_path / "index" / "index.json").read_bytes()
    (tmp_path / "index" / "index.json").write_text("{")
    with pytest.raises(StoreError):
        await store.draft(RECIPE)
    (tmp_path / "index" / "index.json").write_bytes(content)
    async with await store.draft(RECIPE):
        pass
