"""The rows of a table that lines are ruled between, by the lines that are drawn on its page."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence

from ingestion.convert.pdf.characters import Line, PageLines, Rule

FEWEST_ROWS = 3
SAME = 3.0
"""Points by which places may differ that are meant to be one."""


def place_in_rows(page: PageLines) -> None:
    """Note on each line the ruled table, by its number on the page, and the row that it is in."""
    for number, (left, right, heights) in enumerate(_grids(page.rules)):
        inside = [line for line in page.lines if _is_inside(line, left, right, heights)]
        rows = [bisect(heights, line.y) for line in inside]
        several = {row for line, row in zip(inside, rows, strict=True) if len(line.cells) > 1}
        if len(several) >= FEWEST_ROWS and len(several) >= len(set(rows)) / 2:
            for line, row in zip(inside, rows, strict=True):
                line.row = number, -row


def _is_inside(line: Line, left: float, right: float, heights: Sequence[float]) -> bool:
    return heights[0] - SAME < line.y < heights[-1] and left - SAME < line.x0 and line.x1 < right + SAME


def _grids(rules: Iterable[Rule]) -> list[tuple[float, float, list[float]]]:
    """(left, right, places of the lines from the bottom up) of lines of one width below each other; shorter ones
    between them end beside a cell of several rows, which are then read as one.
    """
    grids: list[tuple[float, float, list[float]]] = []
    for rule in _whole(rules):
        left, right, heights = grids[-1] if grids else (0.0, 0.0, [])
        if abs(left - rule.x0) < SAME and abs(right - rule.x1) < SAME:
            heights.append(rule.y)
        elif not left - SAME < rule.x0 < rule.x1 < right + SAME:
            grids.append((rule.x0, rule.x1, [rule.y]))
    return [grid for grid in grids if len(grid[2]) > FEWEST_ROWS]


def _whole(rules: Iterable[Rule]) -> list[Rule]:
    """The lines from the bottom up, those drawn in parts as one."""
    whole: list[Rule] = []
    for rule in sorted(rules):
        if whole and rule.y - whole[-1].y < SAME:
            last = whole.pop()
            whole.append(Rule(last.y, min(last.x0, rule.x0), max(last.x1, rule.x1)))
        else:
            whole.append(rule)
    return whole
