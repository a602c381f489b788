"""Several processes at one directory, some of them killed."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import NoIndex, StoreBusy, StoreError
from app.index.embedded import pointer as embedded_pointer
from app.index.embedded.pointer import Retired
from tests.app.index.embedded.pages import RECIPE, pointer, publish, put, tables, texts_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]

WRITER = """
import asyncio, sys
from app.index.embedded.store import EmbeddedStore
from app.core.types import Chunk, Page, Recipe

async def main(directory, version):
    store = EmbeddedStore(directory, keep=2, grace=0)
    while True:
        version += 1
        recipe = Recipe("test", 4, f"split-{version // 4}", "test")  # every fourth is a rebuild
        async with await store.draft(recipe) as draft:
            print("begun", version, flush=True)
            for number in range(6):
                url = f"https://docs.example.org/{number}"
                text = f"common text of {number} in v{version}"
                chunk = Chunk(f"{number}-{version}", "docs", url, 0, text, "en", "Title")
                await draft.put(Page(url, "docs", "Title", "en", text, "h"), (chunk,), {chunk.id: [1.0, 0, 0, 0]})
            print("publishing", version, flush=True)
            await draft.publish()
            print("published", version, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def run_and_kill(directory: Path, version: int, delay: float) -> int:
    """Run the writer, kill it some time after its first words; the last version it said was published."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), str(version)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as writer:
        line = writer.stdout.readline()
        assert line.startswith("begun")
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        lines = [line, *writer.stdout]
    return max((int(line.split()[1]) for line in lines if line.startswith("published")), default=version)


@pytest.mark.server
async def test_a_killed_writer_leaves_a_whole_generation_and_a_clean_next_draft(store, tmp_path):
    """Whatever the moment: one version is served whole, it is the last published, and the next run works."""
    moments = random.Random(7)
    version = 0
    for _ in range(8):
        said = await asyncio.to_thread(run_and_kill, tmp_path / "index", version, moments.uniform(0.0, 0.5))
        try:
            live = await store.live()
        except NoIndex:
            assert said == 0
            continue
        texts = await texts_of(live)
        served = {int(text.rpartition("v")[2]) for text in texts}
        assert len(texts) == 6
        assert len(served) == 1
        version = served.pop()
        assert version in (said, said + 1)  # killed between publishing and saying so
        assert {p.url for p in await live.pages()} == {f"https://docs.example.org/{n}" for n in range(6)}
        page = await live.page("https://docs.example.org/3")
        assert page.markdown == f"common text of 3 in v{version}"
        assert page.chunk_ids == (f"3-{version}",)
    assert version > 0
    recipe = (await store.live()).info.recipe
    async with await store.draft(recipe) as draft:
        assert not draft.rebuilds
        assert len(await draft.page_states()) == 6
        await put(draft, 9, "common after all")
        await draft.publish()
    assert len(await texts_of(await store.live())) == 7
    named = pointer(tmp_path / "index")
    assert tables(tmp_path / "index") == {
        kind: {g[kind]["name"] for g in named["generations"]} for kind in ("chunks", "texts", "pages")
    }


@pytest.mark.server
async def test_another_process_s_draft_is_busy_until_it_is_killed(store, tmp_path):
    code = WRITER.replace('print("begun", version, flush=True)', 'print("begun", flush=True); await asyncio.sleep(60)')
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "index"), "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as writer:
        await asyncio.to_thread(writer.stdout.readline)
        with pytest.raises(StoreBusy, match="try again"):
            await store.draft(RECIPE)
        writer.kill()
    await publish(store, {1: ("common one",)})


async def test_a_reader_never_sees_half_a_pointer(store, tmp_path):
    """Read in one thread while it is replaced in another: it is always one of the two, whole."""
    await publish(store, {1: ("common one",)})
    small = embedded_pointer.read(tmp_path / "index")
    big = replace(small, retired=(Retired(small.live.tables, 0.0),) * 2000)
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


async def test_rollback_waits_for_no_draft(store):
    await publish(store, {1: ("common one",)})
    await publish(store, {1: ("common two",)})
    async with await store.draft(RECIPE):
        with pytest.raises(StoreBusy):
            await store.rollback()


async def test_a_draft_that_fails_to_begin_gives_the_lock_back(store, tmp_path):
    await publish(store, {1: ("common one",)})
    content = (tmp_path / "index" / "index.json").read_bytes()
    (tmp_path / "index" / "index.json").write_text("{")
    with pytest.raises(StoreError):
        await store.draft(RECIPE)
    (tmp_path / "index" / "index.json").write_bytes(content)
    async with await store.draft(RECIPE):
        pass
