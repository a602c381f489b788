"""Backends of the retriever: an index that this process opens, or a service over HTTP. Both take and return the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from app.api.answer_models import SearchResult
from app.api.request_models import ChatRequest, SearchRequest
from app.core.settings import Settings
from app.core.turn import Source
from app.models.protocols import Closable

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

    def close(self, parts: Closable) -> None:
        """Close connections that were opened in the loop, and stop the thread; safe to call twice.

        A later call starts a new thread.
        """
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop and thread:
            ended = asyncio.run_coroutine_threadsafe(_end(parts), loop)
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


async def _end(parts: Closable) -> None:
    """Cancel what still runs, and close the connections."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await parts.close()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in Markdown, and the sections that it links to. `extractive`: no language model wrote it."""

    text: str
    sources: Sequence[Source]
    extractive: bool


class Backend(Protocol):
    """Searches and answers. All calls must come from one event loop."""

    async def search(self, body: SearchRequest) -> SearchResult:
        """The passages, as `POST /v1/search` returns them. Raises an `AssistantError`."""
        ...

    async def answer(self, body: ChatRequest) -> Answer:
        """The answer to the question. Raises an `AssistantError`."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def open_backend(address: str | Settings, api_key: str = "") -> Backend:
    """The service at an address with http(s), else the index at another address, or the one that is configured.

    Opens no connection yet. Raises `SettingsError` for invalid settings.
    """
    if isinstance(address, str) and address.startswith(("http://", "https://")):
        from app.retriever.http import HttpBackend

        return HttpBackend(address, api_key)
    from app.retriever.local import IndexBackend

    if isinstance(address, Settings):
        return IndexBackend(address)
    return IndexBackend(Settings.load(store=address) if address else Settings.load())
