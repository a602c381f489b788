"""Asynchronous code of ours for callers that block: an event loop in a thread, where connections stay."""

import asyncio
import threading
import weakref
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from app.models.protocols import Closable

T = TypeVar("T")
_END = object()


class LoopThread:
    """Runs coroutines of the owner in one event loop, so that connections of `parts` stay in it. The first call starts the thread.

    Ends with the owner, to which the parts must not refer.
    """

    def __init__(self, owner: object, parts: Closable | None) -> None:
        self._parts = parts
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        weakref.finalize(owner, self.close)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result. Blocks this thread, also if it runs an event loop."""
        return self._begin(work).result()

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """The result. Cancelling the caller cancels the work."""
        return await asyncio.wrap_future(self._begin(work))

    def each(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """The items, each awaited in the loop."""

        async def following() -> T | object:
            return await anext(items, _END)

        try:
            while (item := self.run(following())) is not _END:
                yield item  # type: ignore[misc]  # the end is none of them
        finally:
            self.run(items.aclose())

    def close(self) -> None:
        """Close connections that were opened in the loop, and stop the thread; safe to call twice.

        A later call starts a new thread.
        """
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop and thread:
            ended = asyncio.run_coroutine_threadsafe(_end(self._parts), loop)
            ended.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
            if thread is not threading.current_thread():  # the garbage collector runs in any thread
                thread.join()
                ended.result()

    def _begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="docs-assistant", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


async def _end(parts: Closable | None) -> None:
    """Cancel what still runs, and close the connections."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    if parts:
        await parts.close()
