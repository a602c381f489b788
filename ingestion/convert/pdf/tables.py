"""Lines whose words stand in columns -> a table, or a list of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ingestion.convert.pdf.characters import Line, Run

APART = 6.0
"""Points between the beginnings of two columns."""

SAME = 1.5
_SPACE = Run(" ", 0, 0, mono=False, bold=False)
Row = list[list[Run]]


def table(lines: Sequence[Line], inline: Callable[[Sequence[Run]], str]) -> Iterator[str]:
    """The lines as a table; without rules between its rows, two columns are terms with what they mean, and those lines
    that begin in a later column go on with the row above. Paragraphs when no two lines have a column in common.
    """
    columns = _columns(lines)
    if len(columns) < 2:
        for line in lines:
            yield f"<p>{inline([run for cell in line.cells for run in (*cell, _SPACE)])}</p>"
        return
    rows = [[inline(cell) for cell in row] for row in _rows(lines, columns)]
    if len(columns) == 2 and lines[0].row is None:
        yield "<dl>" + "".join(f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in rows) + "</dl>"
    else:
        yield "<table>" + _row(rows[0], "th") + "".join(_row(row, "td") for row in rows[1:]) + "</table>"


def _rows(lines: Sequence[Line], columns: Sequence[float]) -> list[Row]:
    rows: list[Row] = []
    last: tuple[int, int] | None = None
    for line in lines:
        begins = line.row != last if line.row else _column(columns, line.x0) == 0
        if not rows or begins:
            rows.append([[] for _ in columns])
        last = line.row
        for cell in line.cells:
            column = _column(columns, cell[0].x0)
            for run in cell:
                if any(abs(run.x0 - start) < SAME for start in columns):  # a narrow gap
                    column = _column(columns, run.x0)
                rows[-1][column].append(run)
            rows[-1][column].append(_SPACE)
    return rows


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _columns(lines: Sequence[Line]) -> list[float]:
    """Where columns begin: the places at which cells of several lines do."""
    starts = sorted(cell[0].x0 for line in lines for cell in line.cells)
    groups: list[list[float]] = []
    for x in starts:
        if groups and x - groups[-1][0] < APART:
            groups[-1].append(x)
        else:
            groups.append([x])
    return [group[0] for group in groups if len(group) > 1]


def _column(columns: Sequence[float], x: float) -> int:
    return max((at for at, start in enumerate(columns) if start <= x + APART), default=0)
