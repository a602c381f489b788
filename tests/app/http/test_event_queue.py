"""Waiting for an answer and for the client at once."""

import asyncio
import gc
import logging
import weakref

from app.core.turn import Done, Failure, Text
from app.http import sse as event_queue_module
from app.http.sse import EventQueue
from tests.virtual_time import in_virtual_time


async def never():
    await asyncio.Event().wait()


@in_virtual_time
async def test_a_pipeline_comes_to_its_own_end_after_its_last_event():
    tidied = []

    async def answer():
        yield Text("a")
        yield Done()
        await asyncio.sleep(0.02)
        tidied.append(True)

    async with EventQueue(answer(), never) as inbox:
        assert (await inbox.take())[-1] == Done()
    assert tidied


@in_virtual_time
async def test_a_pipeline_that_never_ends_is_cancelled_after_a_while(monkeypatch):
    monkeypatch.setattr(event_queue_module, "CLEANUP_SECONDS", 0.05)
    cancelled = []

    async def answer():
        yield Text("a")
        yield Done()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async with asyncio.timeout(30), EventQueue(answer(), never) as inbox:
        await inbox.take()
    assert cancelled


@in_virtual_time
async def test_a_failing_close_is_logged_and_spoils_nothing(caplog):
    class Answer:
        def __aiter__(self):
            return self

        async def __anext__(self):
            return await asyncio.sleep(60)

        async def aclose(self):
            raise OSError("no way to close")

    with caplog.at_level(logging.WARNING, "app.http"):
        async with EventQueue(Answer(), never):
            await asyncio.sleep(0)
    assert "no way to close" in caplog.text


@in_virtual_time
async def test_an_error_after_the_end_changes_nothing():
    async def answer():
        yield Text("a")
        yield Done()
        raise OSError("late")

    async with EventQueue(answer(), never) as inbox:
        events = await inbox.take()
    assert events[:2] == [Text("a"), Done()]
    assert not any(isinstance(event, Failure) for event in events[:2])


@in_virtual_time
async def test_a_closed_answer_leaves_memory_without_the_garbage_collector():
    class Passages:
        pass

    async def answer(passages, seconds):
        yield Text("a")
        async with asyncio.timeout(600) as limit:  # as the pipeline, which holds its timeout, and so its task
            await asyncio.sleep(seconds)
        yield Done() if limit else passages

    kept = []
    gc.collect()
    gc.disable()
    try:
        for seconds in (0.01, 60.0):  # complete, and left by the client
            passages = Passages()
            kept.append(weakref.ref(passages))
            async with EventQueue(answer(passages, seconds), never) as inbox:
                del passages
                await inbox.take()
                await asyncio.sleep(1)
            kept.append(weakref.ref(inbox))
            del inbox
        assert [ref() for ref in kept] == [None] * 4
    finally:
        gc.enable()
