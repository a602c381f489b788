"""Health and metrics with many readers at once, over a real store that is warm, slow or broken, and one that has recovered."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from app.assistants import health
from app.assistants.assembly import opened
from app.core.settings import Settings
from app.core.types import Chunk
from app.index import open_store
from app.index.embedded.pointer import FILE
from app.index.embedded.store import EmbeddedStore
from app.models import open_embedder
from app.routes.server import create_app
from tests.app.published import publish
from tests.app.routes.scripted import client_of

PATHS = ("/health/ready", "/health", "/metrics")
OK = 'docs_assistant_index_ok{index="default"} '
LATE = "The store did not answer within 0.3 s."


@pytest.fixture
async def settings(tmp_path):
    settings = Settings.load(None, store=str(tmp_path / "data"))
    store, embedder = open_store(settings), open_embedder(settings)
    await publish(store, embedder, Chunk("c", "docs", "https://example.org/a", 0, "A volume is detached.", "en", "A"))
    await embedder.close()
    await store.close()
    return settings


@asynccontextmanager
async def service(settings):
    async with opened(settings) as assistants, client_of(create_app(assistants, settings)) as client:
        assert (await client.get(PATHS[0])).status_code == 200  # warm
        yield client


@pytest.fixture
async def held(monkeypatch):
    """While this event isn't set, the store doesn't answer in this event loop; services of other tests have loops of their own."""
    goes_on, live, here = asyncio.Event(), EmbeddedStore.live, asyncio.get_running_loop()
    goes_on.set()

    async def held_live(store):
        if asyncio.get_running_loop() is here:
            await goes_on.wait()
        return await live(store)

    monkeypatch.setattr(EmbeddedStore, "live", held_live)
    return goes_on


async def seen(client, path, times=1, number=0):
    """What a reader sees who asks so many times in a row. Each has another pace, as on a network."""
    answers = []
    for time in range(times):
        for _ in range(number * time % 11):
            await asyncio.sleep(0)
        answers.append(await client.get(path))
    return {(answer.status_code, answer.json().get("problem", "") if path == PATHS[0] else "") for answer in answers}


async def all_see(client, path, readers, times=1):
    return set().union(*await asyncio.gather(*(seen(client, path, times, number) for number in range(readers))))


@pytest.mark.parametrize("readers", [2, 10])
@pytest.mark.parametrize("path", PATHS)
async def test_a_warm_service_is_ready_for_all_who_ask_at_once(settings, path, readers):
    """Each asks again as soon as it was answered, so that one's look ends while another's begins."""
    async with service(settings) as client:
        assert await all_see(client, path, readers, (200 if path == PATHS[0] else 40) // readers) == {(200, "")}


async def test_metrics_say_that_the_index_is_fine_to_all_who_scrape_at_once(settings):
    async with service(settings) as client:

        async def scraped():
            return {(await client.get("/metrics")).text.partition(OK)[2][:3] for _ in range(8)}

        assert set().union(*await asyncio.gather(*(scraped() for _ in range(10)))) == {"1.0"}


async def test_who_hangs_up_costs_the_others_nothing(settings, held):
    """A hundred readers wait for one look; half of them, and the one who began it, leave."""
    async with service(settings) as client:
        held.clear()
        waiting = [asyncio.create_task(seen(client, PATHS[0])) for _ in range(100)]
        await asyncio.sleep(0.1)
        for left in waiting[::2]:
            left.cancel()
        held.set()
        stayed = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in stayed[::2]] == [asyncio.CancelledError] * 50
        assert stayed[1::2] == [{(200, "")}] * 50


async def test_a_slow_store_is_told_after_the_wait_and_no_longer_than_it_is_slow(settings, held, monkeypatch):
    """Nobody hears of 0.3 seconds before these have passed."""
    monkeypatch.setattr(health, "STORE_WAIT", 0.3)
    async with service(settings) as client:
        held.clear()
        began = asyncio.get_running_loop().time()
        assert await all_see(client, PATHS[0], 200) == {(503, LATE)}
        assert asyncio.get_running_loop().time() - began >= 0.3
        assert await all_see(client, "/health", 20) == {(503, "")}
        assert "0.0" in (await client.get("/metrics")).text.partition(OK)[2][:3]
        held.set()
        for path in PATHS:
            assert await all_see(client, path, 10, 3) == {(200, "")}
        assert "1.0" in (await client.get("/metrics")).text.partition(OK)[2][:3]


async def test_a_broken_store_is_told_to_all_until_it_is_repaired(settings, tmp_path):
    """By what is wrong with it, not by a time that nobody waited."""
    file = tmp_path / "data" / FILE
    whole = file.read_bytes()
    async with service(settings) as client:
        for content in (b"{", b"[]"):
            file.write_bytes(content)
            ((status, problem),) = await all_see(client, PATHS[0], 10, 10)
            assert status == 503
            assert FILE in problem
            assert await all_see(client, "/health", 10, 5) == {(503, "")}
            file.write_bytes(whole)
            assert await all_see(client, PATHS[0], 10, 10) == {(200, "")}


async def test_a_new_generation_is_seen_by_all(settings):
    """While readers ask, runs publish: nobody is told that the index can't be searched."""
    async with service(settings) as client:
        store, embedder = open_store(settings), open_embedder(settings)
        readers = asyncio.gather(*(seen(client, PATHS[0], 20, number) for number in range(10)))
        page = partial(Chunk, "c", "docs", "https://example.org/a", 0, language="en", title="A")
        for number in range(3):
            await publish(store, embedder, page(text=f"A volume of {number} TB is detached."))
        assert set().union(*await readers) == {(200, "")}
        await store.close()
        await embedder.close()
