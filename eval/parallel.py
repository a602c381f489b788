"""Asks many questions with a limit on parallel ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]


async def in_parallel(
    items: Sequence[Item],
    ask: Callable[[int, Item], Awaitable[Result]],
    parallel: int,
    progress: Progress | None = None,
) -> tuple[Result, ...]:
    """The results of `ask` for each item and its position, in the order of the items, with `parallel` calls at once.
    `progress` is called with the number of finished items and of all.
    """
    found: dict[int, Result] = {}
    queue: Iterator[tuple[int, Item]] = iter(enumerate(items))

    async def work() -> None:
        for position, item in queue:  # all workers share it: each takes the next item
            found[position] = await ask(position, item)
            if progress:
                progress(len(found), len(items))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(items))):
            group.create_task(work())
    return tuple(found[position] for position in range(len(items)))
