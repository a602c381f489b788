"""Where chunks start and end: the way of cutting a page whose breaks cost least in sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """The smallest thing that isn't cut: its length, the room before it in the same chunk, and what a break there costs."""

    length: int
    gap: int
    cost: float


def bounds(parts: Sequence[Part], size: int, room: Callable[[int], float]) -> list[tuple[int, int]]:
    """(first, last + 1) of each chunk, in order; `room` says what a chunk of a length costs for itself.

    No chunk is longer than `size`, but for single parts that are.
    """
    best = [0.0] + [float("inf")] * len(parts)
    start_of = [0] * (len(parts) + 1)
    prices: dict[int, float] = {}  # a page of short lines asks for each length many times
    for end in range(1, len(parts) + 1):
        length = 0
        cost_after = parts[end].cost if end < len(parts) else 0.0
        for start in range(end - 1, -1, -1):
            length += parts[start].length + (parts[start + 1].gap if start + 1 < end else 0)
            if length > size and start < end - 1:
                break
            if (price := prices.get(length)) is None:
                price = prices[length] = room(length)
            total = best[start] + price + cost_after
            if total < best[end]:
                best[end], start_of[end] = total, start
    found, end = list[tuple[int, int]](), len(parts)
    while end:
        found.append((start_of[end], end))
        end = start_of[end]
    return found[::-1]
