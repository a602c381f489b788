"""Something gives way in the middle of a run, on both stores: the index answers as before, nothing is lost."""

import asyncio

import pytest

from app.core.errors import AssistantError, ModelUnavailable, StoreBusy, StoreError, StoreUnavailable
from ingestion.report import EXIT_NOT_PUBLISHED, EXIT_OK, Report
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
        run, says = rig.process(limit=4096).go(), "Make room on its disk"
    else:
        rig.after(4, rig.place.fill)
        run, says = rig.process().go(), "make room"
    code = await asyncio.to_thread(run.wait)
    assert code == EXIT_NOT_PUBLISHED, run.err
    assert says in run.err
    assert "Traceback" not in run.err
    assert await rig.answers() == {"state1"}
    if not isinstance(rig.place, Directory):
        await _fails(rig, StoreError, "make room")
    rig.place.mend()
    await _serves_as_before_and_the_next_run_is_whole(rig, before)


@pytest.fixture
def unsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pages are compared before the others are read: the page that is held back would hold back all of them."""
    monkeypatch.setattr("ingestion.publish.site_blocks.FEWEST", 1_000)


@pytest.mark.usefixtures("unsampled")
async def test_two_runs_at_once(rig: Rig):
    """The second leaves with a message that says why; the first one publishes."""
    rig.write_site("state1")
    await rig.run()
    rig.pages *= 2  # changed pages of few words wait for all others, new ones don't
    rig.write_site("state2")
    asked, go_on = rig.hold("/gauge-7")
    first = asyncio.create_task(rig.run())
    begun = len(rig.llm.embedded)
    assert await asyncio.to_thread(asked.wait, 120)
    async with asyncio.timeout(120):
        while len(rig.llm.embedded) < begun + 2:  # so that something was written
            await asyncio.sleep(0.01)
    with pytest.raises(StoreBusy, match=r"Another run is writing to .*index"):
        await rig.run()
    assert await rig.answers() == {"state1"}
    go_on.set()
    assert (await first).exit_code == EXIT_OK
    assert await rig.answers() == {"state2"}
    assert rig.place.left_over() == []


@pytest.mark.usefixtures("unsampled")
@pytest.mark.parametrize("wait", [0.0, 60.0], ids=["leaves", "waits"])
async def test_two_runs_that_begin_at_once(rig: Rig, wait: float, monkeypatch: pytest.MonkeyPatch):
    """One publishes, the other leaves with a message or does its part after."""
    monkeypatch.setattr("ingestion.run.RETRY_INTERVAL", 0.1)
    rig.write_site("state1")
    await rig.run()
    rig.write_site("state2")
    ended = await asyncio.gather(*(rig.run(wait=wait, embedding_batch=50) for _ in range(2)), return_exceptions=True)
    left = [end for end in ended if isinstance(end, BaseException)]
    assert len(left) == (0 if wait else 1)
    assert all(isinstance(error, StoreBusy) and "Another run" in str(error) for error in left)
    changed = sorted(end.counts["changed"] for end in ended if isinstance(end, Report))
    assert changed == ([0, rig.pages] if wait else [rig.pages])
    assert await rig.answers() == {"state2"}
    assert rig.place.left_over() == []


async def test_vectors_of_another_length_under_the_same_name_rebuild_the_index(rig: Rig):
    """A run that embeds nothing asks the embedder nothing; the first new text shows it, or --force."""
    rig.write_site("state1")
    first = (await rig.run()).published
    rig.llm.dimension = 5
    asked = len(rig.llm.embedded)
    assert not (await rig.run()).changed
    assert len(rig.llm.embedded) == asked
    rig.write_page(3, "state2")
    second = (await rig.run()).published
    assert first is not None
    assert second is not None
    assert (first.recipe.dimension, second.recipe.dimension) == (8, 5)
    assert (second.pages, second.chunks) == (first.pages, first.chunks)
    rig.llm.dimension = 6
    forced = (await rig.run(force=True)).published
    assert forced is not None
    assert forced.recipe.dimension == 6
    assert rig.place.left_over() == []
