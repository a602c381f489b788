"""What the pages of all results have in common: their frame, bars, and how an interval is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.report import render
from eval.measure.compare import flat
from eval.measure.metrics import Estimate
from eval.measure.tables import VARIANTS


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `colour` is the number of its group, `before` the figure that it is compared with."""

    label: str
    n: int
    estimate: Estimate
    colour: int = 0
    before: float | None = None


def page(name: str, heading: str, lead: str, config: Mapping[str, Any], **values: Any) -> str:
    """A page: its heading, its parts as the template `name` arranges the values, and the configuration."""
    rows = [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else value)
        for name, value in flat(config)
        if value not in ("", None, [], {})
    ]
    return render("eval.reports", f"{name}.html", heading=heading, lead=lead, config=rows, variants=VARIANTS, **values)


def spread(one: Estimate) -> str:
    """The interval of an estimate."""
    return f"{one.low:.2f}–{one.high:.2f}"
