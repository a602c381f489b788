"""The tables of a grid as text for the terminal, and with their plots as a page."""

from collections.abc import Mapping, Sequence

from eval.answers.score import kind_table
from eval.measure.grid import Grid, Line, Table, lines_of
from eval.measure.result import ANSWERS, Result
from eval.measure.rows import title
from eval.measure.tables import STAR, as_table, difference_cell, interval_cell
from eval.measure.tables import Table as Cells
from eval.reports.pages import Bar, page

LISTED = 60  # questions in a plot
SHOWN = 15  # questions in the terminal


def cells_of(table: Table, lines: Sequence[Line], k: int) -> Cells:
    """The rows of a table: each measure with its interval, then its paired difference from the first combination."""
    if table.by_question:
        names = [title(name, k) for name in table.measures]
        return ["question", "n", *names], [
            [
                line.label,
                str(line.n),
                *(f"{line.measures[m].mean:.3f}" if m in line.measures else "–" for m in table.measures),
            ]
            for line in lines
        ]
    known = [name for name in table.measures if any(name in line.measures for line in lines)]
    head = [", ".join(table.axes) or "combination", "n"]
    for name in known:
        head += [title(name, k), "difference"] if len(lines) > 1 else [title(name, k)]
    return head, [_row(line, known, compared=len(lines) > 1) for line in lines]


def _row(line: Line, known: Sequence[str], *, compared: bool) -> list[str]:
    cells = [line.label, str(line.n)]
    for name in known:
        cells.append(interval_cell(line.measures[name]) if name in line.measures else "–")
        if compared:
            cells.append(difference_cell(line.differences[name]) if name in line.differences else "")
    return cells


def grid_text(grid: Grid, results: Mapping[str, Result]) -> str:
    """All tables, the judge's table, and what failed."""
    text = list[str]()
    for table in grid.table:
        lines = lines_of(grid, table, results)
        head, rows = cells_of(table, lines, grid.k)
        more = len(rows) - SHOWN if table.by_question else 0
        text += [table.title, "", *as_table(head, rows[:SHOWN] if more > 0 else rows), ""]
        text += [f"and {more} questions more in grid.html.", ""] if more > 0 else []
    if (answered := results.get(ANSWERS)) and (judged := kind_table(answered))[1]:
        text += [*as_table(*judged), ""]
    text += ["Best first. Differences are from the first values of the axes.", STAR]
    for kind, result in results.items():
        if lost := len(result.failed) + result.malformed:
            error = f" The first error: {result.failed[0].error}" if result.failed else ""
            text.append(
                f"FAILED: {lost} answers or judgements of `{kind}`. Run it again: it asks only these again.{error}"
            )
    return "\n".join(text)


def grid_page(grid: Grid, results: Mapping[str, Result]) -> str:
    """The page with a table and plots of each of the grid's tables."""
    parts, any_result = list[dict[str, object]](), next(iter(results.values()))
    for table in grid.table:
        lines = lines_of(grid, table, results)
        plots, legend = _plots(table, lines, grid.k)
        parts.append({"table": table, "cells": cells_of(table, lines, grid.k), "plots": plots, "legend": legend})
    lead = f"{len(any_result.cases)} questions, {len({name for r in results.values() for name in r.contestants})} combinations"
    judged = kind_table(results[ANSWERS]) if ANSWERS in results else ([], [])
    return page("grid", "Grid", lead, any_result, parts=parts, judged=judged, star=STAR)


def _plots(table: Table, lines: Sequence[Line], k: int) -> tuple[list[tuple[str, list[list[Bar]]]], list[str]]:
    """The plots of a table, each with its title and groups of bars, and what the colours of the bars mean.

    Of questions, one with a bar for each measure. Else one for each measure: groups are the values of the first axis, colours those
    of the second.
    """
    names = [title(name, k) for name in table.measures]
    if table.by_question:
        shown = [
            [Bar(line.label, line.n, line.measures[m], i) for i, m in enumerate(table.measures) if m in line.measures]
            for line in lines[:LISTED]
        ]
        return [("", shown)], names
    colours = list(dict.fromkeys(line.values[1] for line in lines if len(line.values) > 1))
    plots = list[tuple[str, list[list[Bar]]]]()
    for measure, name in zip(table.measures, names, strict=True):
        groups = dict[str, list[Bar]]()
        for line in lines:
            if measure in line.measures:
                colour = colours.index(line.values[1]) if colours else 0
                before = line.differences[measure].before if measure in line.differences else None
                bar = Bar(line.label, line.n, line.measures[measure], colour, before)
                groups.setdefault("".join(line.values[:1]), []).append(bar)
        if groups:
            plots.append(
                (name, list(groups.values()) if colours else [[bar for own in groups.values() for bar in own]])
            )
    return plots, colours
