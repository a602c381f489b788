"""The page of follow-up questions: bars as asked against spelled out, differences, what was lost."""

from __future__ import annotations

from collections.abc import Sequence

from eval.measure.conversations import Followed
from eval.measure.metrics import title
from eval.measure.tables import difference_cell, row_name
from eval.page.frame import page, section, table, tiles
from eval.page.retrieval import configuration, worst
from eval.page.svg import Bar, bars


def conversations_page(followed: Sequence[Followed]) -> str:
    """The whole page, each way of measuring with its own parts."""
    first = followed[0].asked
    return page(
        f"Follow-ups: {first.config.get('set', 'a set of conversations')}",
        f"{len(first.cases)} conversations, measured {first.config.get('date', '')}",
        [part for one in followed for part in _parts(one)] + [section("Configuration", configuration(first.config))],
    )


def _parts(one: Followed) -> list[str]:
    k = one.asked.k
    colours = sorted({row.language for row in one.asked.rows})
    chart = [
        [
            Bar(
                row_name(row),
                row.n,
                row.measures["rr"],
                colours.index(row.language),
                before.measures["rr"].mean if before else None,
            )
        ]
        for row in one.asked.rows
        for before in [one.standalone.row(row.language, row.variant, cross=row.cross)]
    ]
    rows = [
        [row_name(row), str(row.n), *(difference_cell(row.measures[name]) for name in ("rr", "hit_1", "hit"))]
        for row in one.difference.rows
    ]
    header = ["as asked minus spelled out", "n", *(title(name, k) for name in ("rr", "hit_1", "hit"))]
    told = f"{100 * one.asked.language_right:.0f} %"
    return [
        section(
            f"{one.name[:1].upper()}{one.name[1:]}: {title('rr', k)} of follow-ups",
            tiles([("language told", told, "rightly, of the follow-ups"), ("failed", str(len(one.asked.failed)), "")])
            + bars(chart)
            + table(header, rows),
            "Bars: the follow-up with its conversation. Thick marks: the same question spelled out. * outside the noise.",
        ),
        section(f"{one.name[:1].upper()}{one.name[1:]}: worst follow-ups", worst(one.asked)),
    ]
