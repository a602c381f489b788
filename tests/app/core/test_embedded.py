"""What the embedded store does beyond the contract: files, crashes, several processes, cleaning up."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.core.errors import NoIndex, SettingsError, StoreBusy, StoreError, StoreUnavailable
from app.core.store import embedded_pointer
from app.core.store.embedded import EmbeddedStore
from app.core.store.embedded_pointer import Retired
from app.core.types import Chunk, LexicalText, Page, Query, Recipe

ROOT = Path(__file__).parents[3]
RECIPE = Recipe(embedder="test", dimension=4, splitter="test", analyzer="test")


@pytest.fixture
async def store(tmp_path):
    opened = EmbeddedStore(tmp_path / "index", keep=2, grace=0)
    yield opened
    await opened.close()


def page_and_chunks(number: int, *texts: str) -> tuple[Page, tuple[Chunk, ...]]:
    url = f"https://docs.example.org/{number}"
    chunks = tuple(Chunk(f"{number} {text}", "docs", url, i, text, "en", "Title") for i, text in enumerate(texts))
    return Page(url, "docs", "Title", "en", "\n".join(texts), "hash"), chunks


async def put(draft, number: int, *texts: str) -> None:
    page, chunks = page_and_chunks(number, *texts)
    await draft.put(page, chunks, {c.id: [1.0, 0.0, 0.0, 0.0] for c in await draft.missing(chunks)})


async def publish(store, pages: dict[int, tuple[str, ...]], recipe: Recipe = RECIPE):
    async with await store.draft(recipe) as draft:
        for number, texts in pages.items():
            await put(draft, number, *texts)
        return await draft.publish()


async def texts_of(generation, question: str = "common") -> set[str]:
    query = Query(texts=(LexicalText("en", question),), vector=[1.0, 0.0, 0.0, 0.0], depth=5000)
    legs = await generation.search(query)
    lexical = {chunk.text for chunk in await generation.fetch([c.id for c in legs.lexical])}
    vector = {chunk.text for chunk in await generation.fetch([c.id for c in legs.vector])}
    assert lexical == vector
    return lexical


def tables(directory: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder in directory.glob("*.lance"):
        found.setdefault(folder.stem.partition("_")[0], set()).add(folder.stem)
    return found


def pointer(directory: Path) -> dict:
    return json.loads((directory / "index.json").read_text())


# ---- crashes and other processes ---------------------------------------------------------------

WRITER = """
import asyncio, sys
from app.core.store.embedded import EmbeddedStore
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


# ---- what is written ---------------------------------------------------------------------------


async def test_touch_writes_no_chunk_and_no_markdown(store, tmp_path):
    await publish(store, {1: ("common one",), 2: ("common two",)})
    before = pointer(tmp_path / "index")
    files = {f for f in (tmp_path / "index").rglob("*") if "pages_" not in str(f) and f.is_file()}
    async with await store.draft(RECIPE) as draft:
        await draft.touch([replace(page, etag="new") for page in (await draft.page_states()).values()])
        await draft.publish()
    after = pointer(tmp_path / "index")
    assert after["generations"][0]["chunks"] == before["generations"][0]["chunks"]
    assert after["generations"][0]["texts"] == before["generations"][0]["texts"]
    assert {f for f in (tmp_path / "index").rglob("*") if "pages_" not in str(f) and f.is_file()} == files


async def test_nothing_changed_writes_nothing(store, tmp_path):
    await publish(store, {1: ("common one",)})
    await store.live()
    before = {
        f: f.stat().st_mtime_ns for f in (tmp_path / "index").rglob("*") if f.is_file() and f.name != "write.lock"
    }
    async with await store.draft(RECIPE) as draft:
        await draft.touch((await draft.page_states()).values())
        await draft.remove("https://docs.example.org/unknown")
        await draft.publish()
    assert before == {
        f: f.stat().st_mtime_ns for f in (tmp_path / "index").rglob("*") if f.is_file() and f.name != "write.lock"
    }


async def test_unchanged_chunks_are_not_copied(store, tmp_path):
    """300 pages with big texts put again, one of them changed, write far less than the index weighs."""
    rng = random.Random(1)
    big = {n: (f"common {n} " + " ".join(str(rng.random()) for _ in range(100)),) for n in range(300)}
    await publish(store, big)

    def written() -> int:
        return sum(f.stat().st_size for f in (tmp_path / "index").glob("chunks_*/data/**/*") if f.is_file())

    before = written()
    await publish(store, big | {7: ("common changed",)})
    assert written() - before < before / 20
    assert len(await texts_of(await store.live())) == 300


async def test_more_pages_than_one_batch_are_all_there(store):
    pages = {n: tuple(f"common {n} part{i}" for i in range(6)) for n in range(400)}
    info = await publish(store, pages)
    assert (info.pages, info.chunks) == (400, 2400)
    live = await store.live()
    legs = await live.search(Query(texts=(LexicalText("en", "common"),), vector=[1.0, 0, 0, 0], depth=5000))
    assert len(legs.lexical) == len(legs.vector) == 2400
    async with await store.draft(RECIPE) as draft:
        for n in range(300):
            await draft.remove(f"https://docs.example.org/{n}")
        info = await draft.publish()
    assert info.chunks == 600
    assert len(await texts_of(await store.live())) == 600


async def test_a_page_put_again_after_a_batch_was_written_replaces_it(store):
    async with await store.draft(RECIPE) as draft:
        await put(draft, 0, "common first")
        for n in range(1, 1100):
            await put(draft, n, f"common {n}")
        await put(draft, 0, "common second")
        await draft.remove("https://docs.example.org/1")
        info = await draft.publish()
    assert info.chunks == 1099
    texts = await texts_of(await store.live())
    assert "common second" in texts
    assert not texts & {"common first", "common 1"}


async def test_a_removed_page_that_comes_back_needs_no_vectors(store):
    await publish(store, {n: (f"common {n}",) for n in range(1100)})
    page, chunks = page_and_chunks(5, "common 5")
    async with await store.draft(RECIPE) as draft:
        for n in range(1050):
            await draft.remove(f"https://docs.example.org/{n}")
        await put(draft, 2000, "common new")  # a batch is full: what was removed is gone from the table
        assert await draft.missing(chunks) == ()
        await draft.put(page, chunks, {})
        await draft.publish()
    live = await store.live()
    assert await texts_of(live) == {f"common {n}" for n in range(1050, 1100)} | {"common 5", "common new"}


@pytest.mark.server
async def test_many_small_changes_keep_the_index_small_and_right(store, tmp_path):
    """Files are merged and old versions deleted while generations come and go."""
    await publish(store, {n: (f"common {n}",) for n in range(30)})
    for step in range(45):
        await publish(store, {step % 30: (f"common {step % 30} changed at {step}",)})
    assert len(await texts_of(await store.live())) == 30
    folder = next((tmp_path / "index").glob("chunks_*"))
    assert len(list((folder / "data").iterdir())) < 50
    assert len(list((folder / "_versions").iterdir())) < 70  # without cleaning 120
    assert len(tables(tmp_path / "index")["pages"]) <= 3


@pytest.mark.server
async def test_a_slow_machine_that_cleans_too_late_publishes_all_the_same(store, monkeypatch, caplog):
    """LanceDB counts the age of versions when it gets to them: a tagged one may be old by then, which only defers cleaning."""
    await publish(store, {0: ("common 2",), 1: ("common same",)})
    monkeypatch.setattr("app.core.store.lance_tables.SLACK", timedelta(seconds=-1))
    await asyncio.sleep(1.2)
    await publish(store, {0: ("common 3",)})
    assert "Old versions of a table stay until the next run" in caplog.text
    assert sorted(await texts_of(await store.live())) == ["common 3", "common same"]
    await store.rollback()
    assert sorted(await texts_of(await store.live())) == ["common 2", "common same"]


@pytest.mark.server
async def test_a_big_index_searches_approximately_and_exactly(store):
    """From 20,000 chunks on there is an index of vectors; its best five are those of the exhaustive search."""
    rng = random.Random(3)
    centres = [[rng.gauss(0, 1) for _ in range(8)] for _ in range(300)]
    recipe = replace(RECIPE, dimension=8)
    async with await store.draft(recipe) as draft:
        for n in range(101):
            page, chunks = page_and_chunks(n, *(f"w{n}x{i}" for i in range(200)))
            vectors = {c.id: [x + rng.gauss(0, 0.2) for x in rng.choice(centres)] for c in chunks}
            await draft.put(page, chunks, vectors)
        await draft.publish()
    live = await store.live()
    shared = 0
    for _ in range(20):
        query = Query(texts=(), vector=[x + rng.gauss(0, 0.2) for x in rng.choice(centres)], depth=5)
        approximate = (await live.search(query)).vector
        exact = (await live.search(replace(query, exact=True))).vector
        assert approximate[0].score <= exact[0].score + 1e-6
        shared += len({c.id for c in approximate} & {c.id for c in exact})
    assert shared >= 95


# ---- generations and cleaning ------------------------------------------------------------------


async def test_a_dropped_generation_stays_readable_for_a_while(tmp_path):
    patient = EmbeddedStore(tmp_path / "index", keep=1, grace=600)
    await publish(patient, {1: ("common v0",)})
    pinned = await patient.live()
    for version in range(1, 4):
        await publish(patient, {1: (f"common v{version}",)})
    await publish(patient, {1: ("common rebuilt",)}, replace(RECIPE, splitter="other"))
    assert len(await patient.generations()) == 1
    assert await texts_of(pinned) == {"common v0"}
    assert (await pinned.page("https://docs.example.org/1")).markdown == "common v0"
    hasty = EmbeddedStore(tmp_path / "index", keep=1, grace=0)
    await publish(hasty, {1: ("common last",)}, replace(RECIPE, splitter="other"))
    assert {kind: len(names) for kind, names in tables(tmp_path / "index").items()} == {
        "chunks": 1,
        "texts": 1,
        "pages": 1,
    }
    await patient.close()
    await hasty.close()


async def test_what_the_pointer_names_survives_somebody_else_s_cleaning(store, tmp_path):
    import lancedb

    for version in range(3):
        await publish(store, {1: (f"common v{version}",)})
    connection = await lancedb.connect_async(str(tmp_path / "index"))
    for kind in ("chunks", "texts"):
        table = await connection.open_table(pointer(tmp_path / "index")["generations"][0][kind]["name"])
        with pytest.raises(RuntimeError, match="tagged"):
            await table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)
    await store.rollback()
    live = await store.live()
    assert await texts_of(live) == {"common v1"}
    assert (await live.page("https://docs.example.org/1")).markdown == "common v1"


async def test_foreign_files_in_the_directory_are_left_alone(store, tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "notes.txt").write_text("mine")
    (tmp_path / "index" / "other.lance").mkdir()
    await publish(store, {1: ("common one",)})
    assert (tmp_path / "index" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "index" / "other.lance").is_dir()


# ---- errors ------------------------------------------------------------------------------------


async def test_a_file_instead_of_a_directory_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    store = EmbeddedStore(tmp_path / "file")
    for call in (store.live(), store.generations(), store.rollback(), store.draft(RECIPE)):
        with pytest.raises(StoreUnavailable, match="file"):
            await call


async def test_a_damaged_pointer_is_said(store, tmp_path):
    await publish(store, {1: ("common one",)})
    file = tmp_path / "index" / "index.json"
    for content in ("", "[]", "null", '{"format": 1}', '{"format": 99}', '{"format": 1, "generations": [1]}'):
        file.write_text(content)
        with pytest.raises(StoreError, match=r"index\.json"):
            await store.live()


async def test_lost_tables_are_said(store, tmp_path):
    await publish(store, {1: ("common one",)})
    shutil.rmtree(next((tmp_path / "index").glob("chunks_*")))
    fresh = EmbeddedStore(tmp_path / "index")
    with pytest.raises(StoreError, match="chunks_"):
        await fresh.live()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_without_the_right_to_write_is_said(tmp_path):
    (tmp_path / "index").mkdir(mode=0o500)
    with pytest.raises(StoreUnavailable, match="can't be written"):
        await EmbeddedStore(tmp_path / "index").draft(RECIPE)


@pytest.mark.server
def test_a_full_disk_leaves_the_live_generation(tmp_path):
    """With a limit on file sizes the draft fails with our error; what was published is served."""
    code = """
import asyncio, resource, signal, sys
from app.core.errors import StoreError
from app.core.store.embedded import EmbeddedStore
from app.core.types import Chunk, Page, Recipe

async def put(draft, text):
    chunk = Chunk(text[:20], "docs", "https://x/" + text[:20], 0, text, "en", "T")
    await draft.put(Page(chunk.url, "docs", "T", "en", text, "h"), (chunk,), {chunk.id: [1.0, 0, 0, 0]})

async def main():
    store = EmbeddedStore(sys.argv[1])
    recipe = Recipe("test", 4, "test", "test")
    async with await store.draft(recipe) as draft:
        await put(draft, "small")
        first = await draft.publish()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        async with await store.draft(recipe) as draft:
            await put(draft, "big " + " ".join(str(n * 7919) for n in range(200_000)))
            await draft.publish()
    except StoreError as error:
        print("said:", error)
    else:
        raise SystemExit("published although the disk is full")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert (await EmbeddedStore(sys.argv[1]).live()).info == first
    async with await store.draft(recipe) as draft:
        await put(draft, "after")
        assert (await draft.publish()).chunks == 2

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "index")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "said: The embedded store can't write" in done.stdout


def test_a_missing_library_names_the_extra():
    code = """
import sys
sys.modules["lancedb"] = None
from app.core.errors import SettingsError
from app.core.store.embedded import EmbeddedStore
try:
    EmbeddedStore("x")
except SettingsError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "docs-assistant[embedded]" in done.stdout
    assert issubclass(SettingsError, Exception)


async def test_live_is_cheap(store):
    """A question asks for the live generation each time: it costs one look at a file."""
    await publish(store, {1: ("common one",)})
    first = await store.live()
    began = time.perf_counter()
    for _ in range(1000):
        assert await store.live() is first
    assert time.perf_counter() - began < 0.5
