"""One writer at a time, and readers beside it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from app.core.errors import StoreError
from app.index.embedded import pointer as embedded_pointer
from app.index.embedded.pointer import Retired
from tests.app.index.embedded.pages import RECIPE, publish


async def test_a_reader_never_sees_half_a_pointer(store, tmp_path):
    """Read in one thread while it is replaced in another: it is always one of the two, whole."""
    await publish(store, {1: ("common one",)})
    small = embedded_pointer.read(tmp_path / "index")
    big = replace(small, retired=(Retired(tuple(small.live.tables.values()), 0.0),) * 2000)
    stop = threading.Event()

    def keep_writing() -> None:
        while not stop.is_set():
            embedded_pointer.write(tmp_path / "index", big)
            embedded_pointer.write(tmp_path / "index", small)

    writing = asyncio.create_task(asyncio.to_thread(keep_writing))
    try:
        for _ in range(200):
            assert await asyncio.to_thread(embedded_pointer.read, tmp_path / "index") in (small, big)
    finally:
        stop.set()
        await writing


async def test_a_draft_that_fails_to_begin_gives_the_lock_back(store, tmp_path):
    await publish(store, {1: ("common one",)})
    content = (tmp_path / "index" / "index.json").read_bytes()
    (tmp_path / "index" / "index.json").write_text("{")
    with pytest.raises(StoreError):
        await store.draft(RECIPE)
    (tmp_path / "index" / "index.json").write_bytes(content)
    async with await store.draft(RECIPE):
        pass
