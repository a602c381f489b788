"""A computation that those who need its result at the same time share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Computes once and keeps the result. Cancelling one who waits ends nothing for the others; a failure isn't kept."""

    def __init__(self) -> None:
        self._task: asyncio.Task[T] | None = None

    async def get(self, compute: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result; begun by the first caller, and anew after a failure. Raises what `compute` raises."""
        task = self._task
        if task is None or (task.done() and (task.cancelled() or task.exception())) or _foreign(task):
            task = self._task = asyncio.create_task(compute())
            # whoever waits gets the error; when all were cancelled, nobody is to be told
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)


def _foreign(task: asyncio.Task[Any]) -> bool:
    return not task.done() and task.get_loop() is not asyncio.get_running_loop()
