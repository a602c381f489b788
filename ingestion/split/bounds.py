"""The boundaries of chunks with the least total cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Part:
    """A piece that is never cut: its length, the gap before it in the same chunk, and the cost of a break there."""

    length: int
    gap: int
    cost: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Lengths of chunks: at most `size`; below `full`, a chunk costs up to `shortness` more."""

    size: int
    full: float
    shortness: float
    chunk: float = 0.1


@dataclass(slots=True)
class _Cheapest:
    """The cheapest of the starts in a window that only moves forward; of equal ones the last."""

    _starts: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, cost: float, start: int) -> None:
        while self._starts and self._starts[-1][0] >= cost:
            self._starts.pop()
        self._starts.append((cost, start))

    def since(self, first: int) -> list[tuple[float, int]]:
        """(cost, start) of the cheapest from this start on; empty when the window is."""
        while self._starts and self._starts[0][1] < first:
            self._starts.popleft()
        return [self._starts[0]] if self._starts else []


def bounds(parts: Sequence[Part], limits: Limits) -> list[tuple[int, int]]:
    """(first, last + 1) of each chunk, in order, in time that grows with the number of parts alone.

    No chunk is longer than the limits, but for single parts that are.
    """
    ends = [0, *accumulate(part.gap + part.length for part in parts)]
    begins = [end + part.gap for end, part in zip(ends, parts, strict=False)]
    slope = limits.shortness / limits.full
    costs, start_of = [0.0], [0]
    full, short = _Cheapest(), _Cheapest()  # costs of starts of full chunks, and of shorter ones
    first = first_short = 0
    for end in range(1, len(parts) + 1):
        length = ends[end]
        short.add(costs[-1] + slope * begins[end - 1], end - 1)
        while first < end - 1 and length - begins[first] > limits.size:
            first += 1
        while first_short < end and length - begins[first_short] >= limits.full:
            full.add(costs[first_short], first_short)
            first_short += 1
        ways = full.since(first)
        ways += [
            (cost + limits.shortness - slope * length, start) for cost, start in short.since(max(first, first_short))
        ]
        cost, start = min(ways, key=lambda way: (way[0], -way[1]))
        costs.append(cost + limits.chunk + (parts[end].cost if end < len(parts) else 0.0))
        start_of.append(start)
    found, end = list[tuple[int, int]](), len(parts)
    while end:
        found.append((start_of[end], end))
        end = start_of[end]
    return found[::-1]
