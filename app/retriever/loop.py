"""An event loop in a thread of its own: for calls from code with and without an event loop, and from several of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines in one event loop, so that connections stay in it. The first call starts the thread."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result. Blocks this thread, also if it runs an event loop."""
        return self._begin(work).result()

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """The result. Cancelling the caller cancels the work."""
        return await asyncio.wrap_future(self._begin(work))

    def close(self) -> None:
        """Stop the thread; safe to call twice. A later call starts a new one."""
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop and thread:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="docs-assistant", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)


class Closable(Protocol):
    """An object with connections."""

    async def close(self) -> None:
        """Close them."""
        ...


def close_in(loop: LoopThread, parts: Closable) -> None:
    """Close the connections in the loop that opened them, then stop it."""
    loop.run(parts.close())
    loop.close()
