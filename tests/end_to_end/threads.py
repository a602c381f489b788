"""The scripted language model in a thread, for tests that block."""

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fake_llm import FakeLLM, fake_llm


@contextmanager
def llm_in_a_thread() -> Iterator[FakeLLM]:
    """A running server; what is set on it counts from the next request on."""
    started: queue.Queue[tuple[FakeLLM, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()

    async def serve() -> None:
        stopped = asyncio.Event()
        async with fake_llm() as llm:
            started.put((llm, asyncio.get_running_loop(), stopped))
            await stopped.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    llm, loop, stopped = started.get(timeout=60)
    try:
        yield llm
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(10)
