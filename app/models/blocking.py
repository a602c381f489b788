"""Calls code that blocks, such as a model in this process, in threads that neither the event loop nor the end of the
program waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
_END = object()


async def in_thread(call: Callable[[], T]) -> T:
    """The result of the call. If this task is cancelled, the call runs to its end, but nobody waits for it."""
    return await _started(call)


async def iterated(items: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
    """The items, each as soon as there is one. Closing the generator stops the iteration after the current item."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Any]()
    closed = threading.Event()

    def put(item: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(queue.put_nowait, item)

    def run() -> None:
        for item in items():
            if closed.is_set():
                return
            put(item)

    done = _started(run)
    done.add_done_callback(lambda _: queue.put_nowait(_END))
    try:
        while (item := await queue.get()) is not _END:
            yield item
        await done
    finally:
        closed.set()
        done.cancel()


def _started(call: Callable[[], T]) -> asyncio.Future[T]:
    """The future result of the call in a daemon thread: threads of an executor would keep the program from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_: Callable[[Any], None], value: object) -> None:
        def unless_cancelled() -> None:
            if not future.done():
                set_(value)

        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(unless_cancelled)

    def run() -> None:
        try:
            result = call()
        except StopIteration as error:  # no future takes it, so its awaiter would wait for good
            failure = RuntimeError("StopIteration, as of next() on nothing")
            failure.__cause__ = error
            settle(future.set_exception, failure)
        except BaseException as error:  # noqa: BLE001  # belongs to who awaits the future
            settle(future.set_exception, error)
        else:
            settle(future.set_result, result)

    threading.Thread(target=run, daemon=True, name="blocking").start()
    return future
