"""The directory of the embedded store: what is cleaned, and errors for what is wrong with it."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import weakref
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import get_ident

import pytest

from app.core.errors import IndexDamaged, StoreError, StoreUnavailable
from app.core.settings import Settings
from app.index import directory_of
from app.index.embedded import generation as generation_module
from app.index.embedded.store import EmbeddedStore
from tests.app.index.embedded.pages import RECIPE, pointer, publish, tables, texts_of

ROOT = Path(__file__).parents[4]


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
    left = {kind: len(names) for kind, names in tables(tmp_path / "index").items()}
    assert left == dict.fromkeys(("chunks", "texts", "pages", "words"), 1)
    await patient.close()
    await hasty.close()


async def test_tables_in_the_pointer_survive_a_cleanup_by_another_program(store, tmp_path):
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


async def test_the_index_of_a_later_version_is_named_and_no_rebuild_takes_its_place(store, tmp_path):
    """A downgrade must not lose what the later version made, as the repair of a damaged index would."""
    await publish(store, {1: ("common one",)})
    file = tmp_path / "index" / "index.json"
    for place in ('"recipe": {', '"info": {'):
        content = file.read_text().replace(place, f'{place} "invented_later": 1,', 1)
        file.write_text(content)
        for call in (store.live(), store.generations(), store.draft(RECIPE, rebuild=True)):
            with pytest.raises(StoreError, match="later version") as raised:
                await call
            assert not isinstance(raised.value, IndexDamaged)
        assert file.read_text() == content


async def test_a_release_that_knows_no_sources_can_read_the_list_of_generations(store, tmp_path):
    """To it, an info with one more field is a damaged index, which it builds anew from its own sites alone."""
    await publish(store, {1: ("common one",)})
    (entry,) = json.loads((tmp_path / "index" / "index.json").read_text())["generations"]
    assert set(entry["info"]) == {"id", "recipe", "built_at", "languages", "pages", "chunks"}
    assert set(entry["info"]["recipe"]) == {"embedder", "dimension", "splitter", "analyzer", "summaries", "questions"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_without_the_right_to_write_is_said(tmp_path):
    (tmp_path / "index").mkdir(mode=0o500)
    with pytest.raises(StoreUnavailable, match="can't be written"):
        await EmbeddedStore(tmp_path / "index").draft(RECIPE)


def test_a_missing_library_names_the_extra():
    """In a process of its own: here, other tests have imported it."""
    code = "import sys; sys.modules['lancedb'] = None; from app.index.embedded.store import EmbeddedStore as S; S('x')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.search(r"^app\.core\.errors\.SettingsError: .*docs-assistant\[embedded\]", done.stderr, re.MULTILINE)


async def test_live_reads_the_pointer_only_when_it_has_changed(store, monkeypatch):
    """A question asks for the live generation each time."""
    await publish(store, {1: ("common one",)})
    first = await store.live()
    monkeypatch.setattr("app.index.embedded.pointer.read", lambda _: pytest.fail("read again"))
    assert await store.live() is first


async def test_the_records_of_all_pages_are_read_beside_the_event_loop(store, monkeypatch):
    """A scrape of metrics asks for them while questions are answered."""
    await publish(store, {1: ("alpha",), 2: ("beta",)})
    threads = []
    read = generation_module.to_page
    monkeypatch.setattr(generation_module, "to_page", lambda record: threads.append(get_ident()) or read(record))
    assert len(await (await store.live()).pages()) == 2
    assert threads
    assert get_ident() not in threads


async def test_what_lancedb_keeps_of_an_earlier_generation_is_dropped_with_it(store, monkeypatch):
    import lancedb

    opened, connect = [], lancedb.connect_async

    async def noted(*arguments, **named):
        connection = await connect(*arguments, **named)
        opened.append(weakref.ref(connection))
        return connection

    monkeypatch.setattr(lancedb, "connect_async", noted)
    for version in range(3):
        await publish(store, {1: (f"common v{version}",)})
        pinned = await store.live()
        assert await texts_of(pinned) == {f"common v{version}"}
    await publish(store, {1: ("common last",)})
    assert await texts_of(await store.live()) == {"common last"}
    assert await texts_of(pinned) == {"common v2"}
    del pinned
    gc.collect()
    assert len(opened) > 3
    assert [ref() is None for ref in opened] == [True] * (len(opened) - 1) + [False]


def test_lancedb_is_imported_without_its_remote_client_which_others_still_get():
    """In a process of its own: here, other tests have imported it."""
    code = (
        "import sys; from app.index.embedded.tables import REMOTE, load_lancedb; load_lancedb();"
        "assert not [name for name in sys.modules if name.startswith('lance_namespace')];"
        "from lance_namespace_urllib3_client.api.table_api import TableApi; assert TableApi.query_table.__doc__"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


async def test_a_draft_that_fails_to_begin_gives_the_lock_back(store, tmp_path):
    await publish(store, {1: ("common one",)})
    content = (tmp_path / "index" / "index.json").read_bytes()
    (tmp_path / "index" / "index.json").write_text("{")
    with pytest.raises(StoreError):
        await store.draft(RECIPE)
    (tmp_path / "index" / "index.json").write_bytes(content)
    async with await store.draft(RECIPE):
        pass


@pytest.mark.parametrize("name", ["a#b", "a%20b", "50%", "~x", "žluť 日本", "a?b", '"{x}[y]'])
async def test_the_directory_may_have_any_name(tmp_path, name):
    """LanceDB percent-encodes paths, and would make a second directory."""
    folder = tmp_path / name / "index"
    store = EmbeddedStore(folder)
    await publish(store, {1: ("common one",)})
    await store.close()
    again = EmbeddedStore(folder)
    assert await texts_of(await again.live()) == {"common one"}
    await again.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_directory_below_the_home_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert directory_of(Settings.load(None, store="~/index")) == tmp_path / "index"
