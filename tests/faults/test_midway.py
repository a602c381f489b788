"""Something gives way in the middle of a run, on both stores: the index answers as before, nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

from app.core.errors import AssistantError, ModelUnavailable, StoreBusy, StoreError, StoreUnavailable
from ingestion.report import EXIT_NOT_PUBLISHED, EXIT_OK
from tests.faults.places import Directory, opened
from tests.faults.rig import Rig, markers

pytestmark = pytest.mark.usefixtures("small_batches")


async def _fails(rig: Rig, error: type[AssistantError], says: str) -> None:
    with pytest.raises(error, match=says):
        await rig.run()


async def _serves_as_before_and_the_next_run_is_whole(rig: Rig, before: dict[str, tuple[str, ...]]) -> None:
    assert await rig.content() == before
    assert await rig.answers() == {"state1"}
    report = await rig.run()
    assert report.exit_code == EXIT_OK
    assert report.counts["changed"] == rig.pages
    assert await rig.answers() == {"state2"}
    assert rig.place.left_over() == []


async def test_an_embedder_that_fails_half_way(rig: Rig):
    """Its own error comes out."""
    rig.write_site("state1")
    await rig.run()
    before = await rig.content()
    rig.write_site("state2")
    rig.after(4, lambda: setattr(rig.llm, "embedding_status", 500))
    await _fails(rig, ModelUnavailable, "answered 500")
    rig.llm.embedding_status = 200
    await _serves_as_before_and_the_next_run_is_whole(rig, before)


async def test_a_store_that_is_gone_half_way(rig: Rig):
    """A reader that was open before goes on afterwards, without being opened again."""
    rig.write_site("state1")
    await rig.run()
    before = await rig.content()
    reader = opened(rig.place)
    assert await markers(await reader.live()) == {"state1"}
    rig.write_site("state2")
    rig.after(4, rig.place.break_down)
    await _fails(rig, StoreUnavailable, "Start it, or correct DOCS_STORE|bring it back and start the run again")
    rig.place.mend()
    assert await markers(await reader.live()) == {"state1"}
    await reader.close()
    await _serves_as_before_and_the_next_run_is_whole(rig, before)


async def test_a_first_run_that_loses_its_store_publishes_nothing(rig: Rig):
    """There is no index then, rather than half of one."""
    rig.write_site("state2")
    rig.after(4, rig.place.break_down)
    await _fails(rig, StoreUnavailable, ".")
    rig.place.mend()
    with pytest.raises(StoreError, match="ingest"):
        await rig.content()
    assert (await rig.run()).exit_code == EXIT_OK
    assert await rig.answers() == {"state2"}


async def test_a_disk_that_is_full(rig: Rig):
    """The run says so and ends with 1; once there is room, the next one is whole."""
    rig.write_site("state1")
    await rig.run()
    before = await rig.content()
    rig.write_site("state2")
    if isinstance(rig.place, Directory):
        program, says = rig.process(limit=4).go(), "Make room on its disk"
    else:
        rig.after(4, rig.place.fill)
        program, says = rig.process().go(), "make room"
    code = await asyncio.to_thread(program.process.wait, 60)
    assert code == EXIT_NOT_PUBLISHED, program.err
    assert says in program.err
    assert "Traceback" not in program.err
    assert await rig.answers() == {"state1"}
    if not isinstance(rig.place, Directory):
        await _fails(rig, StoreError, "make room")
    rig.place.mend()
    await _serves_as_before_and_the_next_run_is_whole(rig, before)


async def test_two_runs_at_once(rig: Rig):
    """The second leaves with a message that says why; the first one publishes."""
    rig.write_site("state1")
    await rig.run()
    rig.write_site("state2")
    asked, go_on = rig.hold("/gauge-7")
    first = asyncio.create_task(rig.run())
    assert await asyncio.to_thread(asked.wait, 20)
    with pytest.raises(StoreBusy, match=r"Another run is writing to .*index"):
        await rig.run()
    assert await rig.answers() == {"state1"}
    go_on.set()
    assert (await first).exit_code == EXIT_OK
    assert await rig.answers() == {"state2"}
    assert rig.place.left_over() == []
