"""Where pages are converted: beside the event loop, and for many pages in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from ingestion.convert import ConversionError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

FIRST_IN_THREAD = 200
"""Calls, two for a page, before processes are worth their start: most nightly runs convert few pages."""

_MOST_PROCESSES = 4
_NICE = 5


def processes() -> int:
    """How many convert at most. They give way to other programs, so a service on the same machine keeps answering."""
    return min(_MOST_PROCESSES, os.cpu_count() or 1)


def _begin() -> None:
    with contextlib.suppress(AttributeError, OSError):  # not on every system
        os.nice(_NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed program can't stop its processes, and they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@dataclass
class Workers:
    """Runs functions of modules on values that can be pickled; use it as `async with`.

    Python computes one thing at a time in a process, so a thread that converts holds up fetching and writing: after
    some hundred calls processes are started, and do it as soon as they are up. A page that ends such a process is
    tried once more alone, and told then.
    """

    first_in_thread: int = FIRST_IN_THREAD
    _calls: int = 0
    _thread: ThreadPoolExecutor = field(init=False)
    _pool: ProcessPoolExecutor | None = None
    _started: Future[None] | None = None
    _one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="convert")

    @classmethod
    def expecting(cls, pages: int) -> Self:
        """For so many pages that nothing is known of: processes are started at once where they are worth it."""
        return cls(0 if 2 * pages > FIRST_IN_THREAD else FIRST_IN_THREAD)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._pool is not None:
            await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    async def run(
        self, work: Callable[Arguments, Result], /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """What the function returns or raises; `ConversionError` when it ends the process."""
        self._calls += 1
        pool = self._ready() if self._calls > self.first_in_thread else None
        if pool is None:
            return await self._in(self._thread, partial(work, *arguments, **named))
        try:
            return await self._in(pool, partial(work, *arguments, **named))
        except BrokenProcessPool:  # by this page, or by one beside it
            if self._pool is pool:
                self._pool = None
        return await self._alone(partial(work, *arguments, **named))

    async def _alone(self, work: Callable[[], Result]) -> Result:
        """Once more in a process of its own, so that no page is blamed for another."""
        async with self._one_by_one:
            pool = _processes(1)
            try:
                return await self._in(pool, work)
            except BrokenProcessPool as error:
                raise ConversionError("ends the process that converts it: it is too large or damaged") from error
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    async def _in(self, executor: Executor, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(executor, work)

    def _ready(self) -> ProcessPoolExecutor | None:
        """The processes, once one of them is up."""
        if self._pool is None:
            self._pool = _processes(processes())
            self._started = self._pool.submit(_load)
        started = self._started
        if started is None or not started.done() or started.cancelled():
            return None
        # where none can be started (a script without a main guard), the thread goes on
        return self._pool if started.exception() is None else None


def _load() -> None:
    """Have what converting needs imported before the first page comes."""
    import ingestion.own_markdown
    import ingestion.prepare  # noqa: F401


def _processes(count: int) -> ProcessPoolExecutor:
    # spawned: the store's threads don't survive a fork
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
