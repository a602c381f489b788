"""The pages of results: the frame and the charts of all of them, and the content of those of searches and refusals."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from eval.measure.compare import flat
from eval.measure.metrics import Estimate, title
from eval.measure.refusals import ANSWERABLE, CROSS, Refusals
from eval.measure.result import Outcome, Result
from eval.measure.retrieval import language_right
from eval.measure.tables import STAR, VARIANTS, curve_table, group_table, row_name, whole_table

WORST = 25
LISTED = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `colour` is the number of its group, `before` the figure that it is compared with."""

    label: str
    n: int
    estimate: Estimate
    colour: int = 0
    before: float | None = None


def page(name: str, what: str, lead: str, result: Result, **values: Any) -> str:
    """A page: its heading, its parts as the template `name` arranges the values, and the configuration."""
    config = [
        (key, ", ".join(map(str, value)) if isinstance(value, list) else value)
        for key, value in flat(result.config)
        if value not in ("", None, [], {})
    ]
    heading = f"{what}: {result.config.get('set', 'a question set')}"
    lead = f"{lead}, measured {result.config.get('date', 'at an unknown time')}"
    template = _environment().get_template(f"{name}.html")
    return template.render(heading=heading, lead=lead, config=config, variants=VARIANTS, result=result, **values)


def spread(estimate: Estimate) -> str:
    """The interval of an estimate."""
    return f"{estimate.low:.2f}–{estimate.high:.2f}"


def compared(result: Result) -> list[tuple[Any, ...]]:
    """Every other contestant against the base: the names and two tables."""
    return [
        (comparison.names, whole_table(comparison), group_table(comparison), STAR) for comparison in result.comparisons
    ]


def bars(result: Result, measure: str, before: Result | None = None) -> list[list[Bar]]:
    """The bars of a measure: contestants side by side, a single one by language, with marks where it stood `before`."""
    names = result.contestants
    languages = sorted({row.language for row in result.rows[names[0]]})
    groups: dict[tuple[str, str, bool], list[Bar]] = {}
    for name in names:
        for row in result.rows[name]:
            if measure not in row.measures:
                continue
            earlier = before.row(row.language, row.variant, cross=row.cross) if before else None
            mark = earlier.measures[measure].mean if earlier else None
            alone = len(names) == 1
            colour = languages.index(row.language) if alone else names.index(name)
            bar = Bar(row_name(row), row.known[measure], row.measures[measure], colour, mark)
            groups.setdefault((row.language, "" if alone else row.variant, row.cross), []).append(bar)
    return list(groups.values())


def retrieval_page(result: Result, before: Result | None = None) -> str:
    """The page of a result of searches; `before` adds marks and differences."""
    return page(
        "retrieval",
        "Retrieval",
        f"{len(result.cases)} questions about {len({case.doc for case in result.cases})} pages",
        result,
        figures=_figures(result),
        chart=f"{title('rr', result.k)} by language and way of asking",
        bars_of=bars(result, "rr", before),
        before=before,
        compared=compared(result),
        curve=curve_table(result),
        worst=_worst(result),
    )


def refusals_page(result: Result) -> str:
    """The page of refusals: shares by kind, the curve over thresholds, wrong decisions."""
    figures = Refusals(result)
    groups: dict[str, list[Bar]] = {}
    for share in figures.shares:
        colour = 0 if share.kind in {ANSWERABLE, CROSS} else 1
        groups.setdefault(share.kind, []).append(Bar(f"{share.kind}, {share.language}", share.n, share.refused, colour))
    return page(
        "refusals",
        "Refusals",
        f"{len(result.outcomes)} questions",
        result,
        figures=figures,
        bars_of=list(groups.values()),
        over_refusal=[(point.threshold, point.over_refusal) for point in figures.curve],
        recall=[(point.threshold, point.recall) for point in figures.curve],
        listed=LISTED,
    )


def _figures(result: Result) -> list[tuple[str, str, str]]:
    """The main figures: name, value, note."""
    whole, ms = result.row() or result.rows[result.contestants[0]][0], result.milliseconds
    names = [name for name in ("rr", "hit_1", "hit") if name in whole.measures]
    figures = [
        (title(name, result.k), f"{whole.measures[name].mean:.3f}", spread(whole.measures[name])) for name in names
    ]
    if ms:
        figures.append(("search", f"{ms['p50']:.0f} ms", f"median; p95 {ms['p95']:.0f} ms"))
    if all("detected" in outcome.details for outcome in result.outcomes):
        figures.append(("language detected", f"{100 * language_right(result):.1f} %", "correctly"))
    return [*figures, ("failed", str(len(result.failed)), "questions, which are misses")]


def _worst(result: Result) -> list[Outcome]:
    """The questions whose page the first contestant found last or not at all."""
    own = [
        (outcome.values["rr"] or 0.0, outcome.case.id, outcome) for outcome in result.of(result.contestants[0]).outcomes
    ]
    return [outcome for rr, _, outcome in sorted(own, key=lambda entry: entry[:2])[:WORST] if rr < 1]


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("eval.reports"),
        extensions=["jinja2.ext.do"],
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
