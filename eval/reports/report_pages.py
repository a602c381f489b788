"""The content of each page: figures, groups of bars and questions; the templates define the form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eval.grid.result import GridResult, explained, grid_rows, validation_text
from eval.measure.conversations import FollowUps
from eval.measure.embedding_space import Space
from eval.measure.metrics import CURVE, title
from eval.measure.refusals import ANSWERABLE, CROSS, Decision, RefusalResult
from eval.measure.result import CaseResult, RetrievalResult
from eval.measure.rows import MEAN, Row
from eval.measure.tables import CURVE_NAMES, difference_cell, row_name
from eval.reports.answers import Bar, page, spread

WORST = 25
LISTED = 20


def retrieval_page(result: RetrievalResult, baseline: RetrievalResult | None = None, space: Space | None = None) -> str:
    """The page of a retrieval result. `baseline` adds marks and differences, `space` the picture of the pages."""
    lead = f"{len(result.cases)} questions about {len({case_result.case.doc for case_result in result.cases})} pages"
    lead += f", measured {result.config['date']}" if "date" in result.config else ""
    lead += f", against a result of {baseline.config.get('date', 'unknown date')}" if baseline else ""
    points = [point for point in result.curve if point.language == MEAN] or list(result.curve)
    curve = [
        [f"{p.level}s, first {p.k}", *(f"{p.measures[m].mean:.3f}  {spread(p.measures[m])}" for m in CURVE)]
        for p in points
    ]
    return page(
        "retrieval",
        f"Retrieval: {result.config.get('set', 'a question set')}",
        lead,
        result.config,
        result=result,
        figures=_figures(result),
        chart=f"{title('rr', result.k)} by language and way of asking",
        bars_of=_row_bars(result.rows, baseline),
        baseline=baseline,
        curve=(["", *(CURVE_NAMES[name] for name in CURVE)], curve),
        worst=_worst(result),
        space=space,
        languages=sorted({spot.language for spot in space.spots}) if space else [],
    )


def conversations_page(followed: Sequence[FollowUps]) -> str:
    """The page of follow-up questions, with a part for each run."""
    first = followed[0].asked
    names = ("rr", "hit_1", "hit")
    parts = [
        {
            "name": f"{follow_up.name[:1].upper()}{follow_up.name[1:]}",
            "figures": [
                ("language detected", f"{100 * follow_up.asked.language_right:.0f} %", "correctly, of the follow-ups"),
                ("failed", str(len(follow_up.asked.failed)), ""),
            ],
            "bars": [[bar] for group in _row_bars(follow_up.asked.rows, follow_up.standalone) for bar in group],
            "header": ["as asked minus spelled out", "n", *(title(name, first.k) for name in names)],
            "rows": [
                [row_name(row), str(row.n), *(difference_cell(row.measures[name]) for name in names)]
                for row in follow_up.difference.rows
            ],
            "worst": _worst(follow_up.asked),
            "k": follow_up.asked.k,
        }
        for follow_up in followed
    ]
    return page(
        "conversations",
        f"Follow-ups: {first.config.get('set', 'a set of conversations')}",
        f"{len(first.cases)} conversations, measured {first.config.get('date', '')}",
        first.config,
        parts=parts,
        measure=title("rr", first.k),
    )


def refusals_page(result: RefusalResult) -> str:
    """The page of refusals: shares by kind, the curve over thresholds, chosen thresholds, wrong decisions."""
    groups: dict[str, list[Bar]] = {}
    for share in result.shares:
        colour = 0 if share.kind in {ANSWERABLE, CROSS} else 1
        groups.setdefault(share.kind, []).append(Bar(f"{share.kind}, {share.language}", share.n, share.refused, colour))
    return page(
        "refusals",
        f"Refusals: {result.config.get('set', 'a question set')}",
        f"{len(result.decisions)} questions, measured {result.config.get('date', '')}",
        result.config,
        result=result,
        bars_of=list(groups.values()),
        over_refusal=[(point.threshold, point.over_refusal) for point in result.curve],
        recall=[(point.threshold, point.recall) for point in result.curve],
        wrong=lambda answerable: _wrong(result, answerable=answerable)[:LISTED],
    )


def grid_page(result: GridResult) -> str:
    """The page of a grid: a bar for each configuration, its differences to the first one, its figures."""
    first = result.first
    before = next(iter(result.measured)).mean
    chart = [
        Bar(
            configuration.name,
            configuration.mean.n,
            configuration.mean.measures["rr"],
            min(i, 1),
            before.measures["rr"].mean if i else None,
        )
        for i, configuration in enumerate(result.measured)
        if configuration.mean and before
    ]
    return page(
        "grid",
        f"Grid: {first.config.get('set', 'a question set')}",
        f"{len(result.measured)} configurations, {len(first.cases)} questions, measured {first.config.get('date', '')}",
        first.config,
        figures=_figures(first),
        measure=title("rr", first.k),
        bars_of=[chart],
        table_of=grid_rows(result),
        explained=explained(result),
        validation=validation_text(result.validation, first.k) if result.validation else "",
    )


def _figures(result: RetrievalResult) -> list[tuple[str, str, str]]:
    """The main figures: name, value, note."""
    whole, ms = result.row(MEAN) or next(iter(result.rows), None), result.milliseconds
    names = ("rr", "hit_1", "hit") if whole else ()
    figures = [(title(n, result.k), f"{whole.measures[n].mean:.3f}", spread(whole.measures[n])) for n in names if whole]
    if ms:
        figures.append(("search", f"{ms['p50']:.0f} ms", f"median; p95 {ms['p95']:.0f} ms"))
    figures.append(("language detected", f"{100 * result.language_right:.1f} %", "correctly"))
    return [*figures, ("failed", str(len(result.failed)), "searches, which are misses")]


def _row_bars(rows: Sequence[Row], baseline: RetrievalResult | None) -> list[list[Bar]]:
    languages = sorted({row.language for row in rows})
    groups: dict[tuple[str, bool], list[Bar]] = {}
    for row in rows:
        before = baseline.row(row.language, row.variant, cross=row.cross) if baseline else None
        mark = before.measures["rr"].mean if before else None
        bar = Bar(row_name(row), row.n, row.measures["rr"], languages.index(row.language), mark)
        groups.setdefault((row.language, row.cross), []).append(bar)
    return list(groups.values())


def _worst(result: RetrievalResult) -> Iterable[CaseResult]:
    """The questions whose page was found last or not at all."""
    ordered = sorted(result.cases, key=lambda one: (one.scores.rr, one.case.id))
    return [case_result for case_result in ordered[:WORST] if case_result.scores.rr < 1]


def _wrong(result: RefusalResult, *, answerable: bool) -> list[Decision]:
    wrong = [
        decision
        for decision in result.decisions
        if not decision.error and (decision.kind in {ANSWERABLE, CROSS}) == answerable == decision.refused
    ]
    return sorted(wrong, key=lambda one: one.evidence, reverse=not answerable)
