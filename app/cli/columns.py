"""Plain columns for the terminal: nothing is cut off, so that lines can be searched and piped on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def columns(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The lines of a table, numbers to the right; an empty field is a dash."""
    table = [[_cell(value) for value in row] for row in rows]
    numeric = [all(isinstance(value, int) for value in column) for column in zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(headings, *table, strict=True)]
    right = numeric or [False] * len(headings)
    for cells in (headings, *table):
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        yield "  ".join(padded).rstrip()


def _cell(value: object) -> str:
    return " ".join(str(value).split()) or "-"
