"""Code that blocks, in threads that end with the program."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
_END: Any = object()


def inherits(item: object, base: type, method: str) -> bool:
    """True if the class of the item leaves the method to this base. There is no public way to know whether a class of LlamaIndex blocks."""
    return getattr(type(item), method) is getattr(base, method)


async def iterated(items: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
    """The items, each made in a thread. Closing the generator stops the iteration after the current item."""
    iterator = await in_thread(items)
    while (item := await in_thread(lambda: next(iterator, _END))) is not _END:
        yield item


def in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """The future result of the call in a daemon thread: threads of an executor would keep the program from ending. If its
    awaiter is cancelled, the call runs to its end, but nobody waits for it.
    """
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
