"""Many questions asked at once, but no more than wanted."""

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
    """What `ask` gives for each item and its position, in the order of the items; `parallel` of them are under way at
    once. `progress` is called with how many of how many are done.
    """
    found: dict[int, Result] = {}
    queue: Iterator[tuple[int, Item]] = iter(enumerate(items))

    async def work() -> None:
        for position, item in queue:  # shared: each worker takes the next one
            found[position] = await ask(position, item)
            if progress:
                progress(len(found), len(items))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(items))):
            group.create_task(work())
    return tuple(found[position] for position in range(len(items)))
