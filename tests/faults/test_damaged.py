"""An index that is damaged under the service: health says so, the next run mends it, and answers are right again."""

import json
import os
import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.errors import NotPublished
from app.core.settings import Settings
from app.core.turn import Failure, Message, Request, Text
from tests.faults.places import Directory, Server
from tests.faults.places import opened as open_place
from tests.faults.rig import Rig
from tests.ingestion.local_site import Answer

Damage = Callable[[Path], None]
COMMAND = "docs-assistant ingest"


def _files(kind: str, part: str) -> Callable[[Path], list[Path]]:
    return lambda folder: sorted(path for path in folder.glob(f"{kind}_*.lance/{part}/**/*") if path.is_file())


def _pointer(_: Path) -> list[Path]:
    return [_ / "index.json"]


def _each(files: Callable[[Path], Iterable[Path]], change: Callable[[bytes], bytes]) -> Damage:
    def damage(folder: Path) -> None:
        for path in files(folder):
            path.write_bytes(change(path.read_bytes()))

    return damage


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _zeros(content: bytes) -> bytes:
    return bytes(len(content))


def _noise(content: bytes) -> bytes:
    return random.Random(1).randbytes(len(content))


def _hole(content: bytes) -> bytes:
    return content[: len(content) // 4] + bytes(len(content) // 4) + content[len(content) // 4 * 2 :]


def _without(pattern: str) -> Damage:
    def damage(folder: Path) -> None:
        for found in folder.glob(pattern):
            shutil.rmtree(found) if found.is_dir() else found.unlink()

    return damage


def _rewritten(change: Callable[[dict], object]) -> Damage:
    def damage(folder: Path) -> None:
        pointer = json.loads((folder / "index.json").read_bytes())
        change(pointer["generations"][0])
        (folder / "index.json").write_text(json.dumps(pointer))

    return damage


def _damages() -> Iterator[tuple[str, Damage]]:
    for kind in ("chunks", "texts", "pages", "words"):
        yield f"no {kind}", _without(f"{kind}_*.lance")
        yield f"no data of {kind}", _without(f"{kind}_*.lance/data/*")
        yield f"no manifest of {kind}", _without(f"{kind}_*.lance/_versions")
    for kind, part, change in (
        ("chunks", "data", _half), ("chunks", "data", _noise), ("texts", "data", _zeros), ("pages", "data", _half),
        ("chunks", "_versions", _zeros), ("pages", "_versions", _half),
    ):  # fmt: skip
        yield f"{change.__name__} of {kind} {part}", _each(_files(kind, part), change)
    yield "a hole in the pages", _each(_files("pages", "data"), _hole)
    yield "no word index", _without("chunks_*.lance/_indices")
    yield "half a word index", _each(_files("chunks", "_indices"), _half)
    yield "no pointer", _without("index.json")
    for change in (_half, _zeros, lambda _: b"", lambda _: b"[]"):
        yield "another pointer", _each(_pointer, change)
    yield "tables that changed places", _rewritten(lambda live: live.update(chunks=live["texts"], texts=live["chunks"]))
    yield "a version that there isn't", _rewritten(lambda live: live["chunks"].update(version=99))
    yield "an empty version", _rewritten(lambda live: live["chunks"].update(version=1))
    yield "another dimension", _rewritten(lambda live: live["info"]["recipe"].update(dimension=7))


async def _health(rig: Rig, assistants: Assistants) -> tuple[bool, str]:
    """As a service that was just started says it."""
    store = open_place(rig.place)
    indices = {**assistants.indices, "": replace(assistants.indices[""], store=store)}
    health = await replace(assistants, indices=indices, checks={}).health()
    await store.close()
    details = {key: one for key, one in health.details.items() if key != "memory_mb"}
    return health.ok, f"{health.store} {details}"


async def _asked(rig: Rig) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What a service that was just started answers, and the pages that it finds by whole words and as one types."""
    request = Request((Message("user", "What does gauge number 2 measure?"),), "", "fault")
    async with opened(_settings(rig)) as made:
        one = made.get("")
        events = [event async for event in one.answer(request)]
        assert not [event for event in events if isinstance(event, Failure)], events
        found, typed = await one.find(request), await one.search(replace(request, as_you_type=True))
        text = "".join(event.text for event in events if isinstance(event, Text))
        return text, *(tuple(hit.chunk.url for hit in turn.hits) for turn in (found, typed))


def _settings(rig: Rig) -> Settings:
    return Settings.load(None, **rig.values)


@pytest.fixture
async def assistants(rig: Rig) -> AsyncIterator[Assistants]:
    async with opened(_settings(rig)) as made:
        yield made


@pytest.fixture
def small(rig: Rig) -> Rig:
    rig.pages = 3
    rig.write_site("state1")
    return rig


@pytest.mark.parametrize("rig", ["embedded"], indirect=True)
async def test_health_tells_a_damaged_directory_and_the_next_run_mends_it(
    small: Rig, assistants: Assistants, tmp_path: Path
):
    """Whatever is missing, cut, empty or in the wrong place."""
    assert isinstance(small.place, Directory)
    await small.run()
    whole = await small.content()
    assert await _health(small, assistants) == (True, "ok {}")
    answers = await _asked(small)
    assert answers[0]
    folder, copy = small.place.folder, tmp_path / "copy"
    shutil.copytree(folder, copy)
    for name, damage in _damages():
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
        damage(folder)
        ok, told = await _health(small, assistants)
        # words are counted again; of one page it may be another than health looks at
        assert ok == name.endswith(" words") or name == "a hole in the pages", name
        if name.endswith(" words"):
            assert (await _asked(small)) == answers, name
        assert COMMAND in told or name == "a hole in the pages", told
        await small.run()
        assert await small.content() == whole, name
        assert await _health(small, assistants) == (True, "ok {}"), name
        assert small.place.left_over() == [], name


@pytest.mark.parametrize("rig", ["embedded"], indirect=True)
async def test_a_damaged_index_is_kept_while_its_site_cant_be_read(small: Rig):
    """Nothing is published over it; `--rebuild` obeys the same guard, and an index that can be read keeps its pages."""
    await small.run()
    answers = dict(small.site.answers)
    small.site.answers.clear()
    small.list_pages(small.pages)
    before = await small.content()
    with pytest.raises(NotPublished):
        await small.run(rebuild=True)
    assert await small.content() == before
    assert isinstance(small.place, Directory)
    _without("chunks_*.lance/data/*")(small.place.folder)
    with pytest.raises(NotPublished):
        await small.run()
    small.site.answers.update(answers)
    small.site.answers["/gauge-1"] = Answer(status=503)
    report = await small.run()  # the page's Markdown can still be read
    assert any("damaged" in warning for warning in report.warnings)
    assert await small.content() == before


@pytest.mark.opensearch
@pytest.mark.parametrize("rig", ["opensearch"], indirect=True)
async def test_health_tells_a_damaged_opensearch_index_and_the_next_run_mends_it(small: Rig, assistants: Assistants):
    """A lost alias, catalog or index, rows that went away, a catalog that says something else."""
    assert isinstance(small.place, Server)
    await small.run()
    whole = await small.content()
    name = small.place.name
    with httpx.Client(base_url=os.environ["DOCS_TEST_OPENSEARCH"], timeout=60) as http:
        every = {"query": {"match_all": {}}}
        for method, path, body in (
            ("DELETE", f"/{name}-meta", None),
            ("PUT", f"/{name}-meta/_doc/state?refresh=true", {"kept": "?"}),
            ("DELETE", "/{chunks}-pages", None),
            ("DELETE", "/{chunks}/_alias/" + name, None),
            ("DELETE", "/{chunks}", None),
            ("POST", "/{chunks}/_delete_by_query?refresh=true", every),
            ("POST", "/{chunks}-pages/_delete_by_query?refresh=true", every),
        ):
            (chunks,) = http.get(f"/_alias/{name}").json()
            http.request(method, path.format(chunks=chunks), json=body).raise_for_status()
            ok, told = await _health(small, assistants)
            assert not ok, path
            assert COMMAND in told, told
            await small.run()
            assert await small.content() == whole, path
            assert await _health(small, assistants) == (True, "ok {}"), path
            assert small.place.left_over() == [], path
