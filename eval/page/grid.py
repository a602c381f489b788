"""The page of a grid: every configuration as a bar, its differences to the first one, its figures by language."""

from __future__ import annotations

from collections.abc import Sequence

from eval.measure.compare import compare
from eval.measure.grid import Configuration, against_first
from eval.measure.metrics import Estimate, title
from eval.measure.result import ALL, MEAN, RetrievalResult
from eval.measure.tables import row_name
from eval.page.frame import page, section, table
from eval.page.retrieval import configuration, figures
from eval.page.svg import Bar, bars


def grid_page(results: Sequence[tuple[Configuration, RetrievalResult]]) -> str:
    """The whole page."""
    first = results[0][1]
    return page(
        f"Grid: {first.config.get('set', 'a question set')}",
        f"{len(results)} configurations, {len(first.cases)} questions, measured {first.config.get('date', '')}",
        [
            figures(first),
            section(
                f"{title('rr', first.k)}, mean of the languages",
                bars([_bars(results)]),
                "Thick marks: the first configuration, whose figures stand above. Whiskers: 95 % interval, drawn by page.",
            ),
            section(
                "Against the first",
                table(
                    ["configuration", f"difference of {title('rr', first.k)}, 95 %", "outside the noise"],
                    _gaps(results),
                ),
                "Question by question. With many configurations one in twenty is outside the noise by chance: confirm it"
                " on other questions.",
            ),
            section("By language", _languages(results)),
            section("Configuration of the first", configuration(first.config)),
        ],
    )


def _bars(results: Sequence[tuple[Configuration, RetrievalResult]]) -> list[Bar]:
    before = _whole(results[0][1]).mean
    return [
        Bar(one.name, len(result.cases), _whole(result), min(i, 1), before if i else None)
        for i, (one, result) in enumerate(results)
    ]


def _whole(result: RetrievalResult) -> Estimate:
    row = result.row(MEAN) or result.rows[-1]
    return row.measures["rr"]


def _gaps(results: Sequence[tuple[Configuration, RetrievalResult]]) -> list[list[str]]:
    first = results[0][1]
    told = [(one.name, against_first(compare(first, result))) for one, result in results[1:]]
    return [[name, gap.replace("*", ""), "yes" if "*" in gap else "no"] for name, gap in told]


def _languages(results: Sequence[tuple[Configuration, RetrievalResult]]) -> str:
    groups = [row for row in results[0][1].rows if row.variant == ALL]
    rows = []
    for one, result in results:
        cells = [result.row(row.language, cross=row.cross) for row in groups]
        told = ["–" if cell is None else f"{cell.measures['rr'].mean:.3f}" for cell in cells]
        rows.append([one.name, *told, f"{result.milliseconds.get('p50', 0):.0f}"])
    return table(["configuration", *(row_name(row) for row in groups), "ms"], rows)
