"""A computation that concurrent callers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Computes a value once and keeps it. Cancelling one caller doesn't affect the others; a failure isn't kept."""

    def __init__(self) -> None:
        self._task: asyncio.Task[T] | None = None

    async def get(self, compute: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result. The first caller starts the computation; a call after a failure starts it again."""
        task = self._task
        if task is None or (task.done() and (task.cancelled() or task.exception())) or _foreign(task):
            task = self._task = asyncio.create_task(compute())
            # callers receive the error; without callers, mark it as retrieved
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)


def _foreign(task: asyncio.Task[Any]) -> bool:
    return not task.done() and task.get_loop() is not asyncio.get_running_loop()
