"""Output of the commands: tables on standard output, errors on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from app.core.errors import AssistantError
from app.core.masking import masked


def print_error(error: AssistantError) -> None:
    """Print the error's message on standard error; passwords in addresses are masked."""
    print(f"docs-assistant: {masked(str(error))}", file=sys.stderr)


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The lines of a table with numbers aligned right. Nothing is cut off, so the output can be searched and piped."""
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
    """The value on one line; a dash if it is empty."""
    return " ".join(str(value).split()) or "-"
