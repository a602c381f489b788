"""Charts as SVG inside the page: bars with intervals, curves, and the picture of the embedding space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from eval.measure.embedding_space import Space, Spot
from eval.measure.metrics import Estimate

WIDTH = 1000
COLOURS = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `colour` counts the groups, `before` is the same figure of the baseline."""

    label: str
    n: int
    estimate: Estimate
    colour: int = 0
    before: float | None = None


def bars(groups: Sequence[Sequence[Bar]]) -> str:
    """Horizontal bars from 0 to 1 in groups, each with its interval and a mark where the baseline stood."""
    ticks = "".join(f"<span>{share:g}</span>" for share in (0, 0.2, 0.4, 0.6, 0.8, 1))
    axis = f'<span></span><div class="axis">{ticks}</div><span></span><span></span>'
    gap = '<span class="gap"></span>'
    return f'<div class="bars">{axis}{gap.join("".join(map(_bar, group)) for group in groups)}</div>'


def _bar(bar: Bar) -> str:
    one, told, before = bar.estimate, f"{bar.estimate.mean:.3f}", ""
    low, high, mean = (100 * max(0.0, min(1.0, share)) for share in (one.low, one.high, one.mean))
    if bar.before is not None:
        before = f'<line class="before" x1="{100 * bar.before:.2f}" x2="{100 * bar.before:.2f}" y1="0" y2="24"/>'
        told += f" ({round(one.mean - bar.before, 3) + 0.0:+.3f})"
    ends = "".join(f'<line class="whisker" x1="{x:.2f}" x2="{x:.2f}" y1="8" y2="16"/>' for x in (low, high))
    # stretched to the room there is: no text in it, and strokes that keep their width
    drawn = (
        '<svg viewBox="0 0 100 24" preserveAspectRatio="none" role="img">'
        '<rect class="track" width="100" y="3" height="18"/>'
        f'<rect class="fill-{bar.colour % COLOURS}" width="{mean:.2f}" y="3" height="18"/>'
        f'<line class="whisker" x1="{low:.2f}" x2="{high:.2f}" y1="12" y2="12"/>{ends}{before}</svg>'
    )
    return (
        f'<span class="label">{escape(bar.label)}</span>{drawn}<span class="told">{told}</span>'
        f'<span class="told soft">{bar.n}</span>'
    )


@dataclass(frozen=True, slots=True)
class Line:
    """A curve over 0..1, its values 0..1 as well."""

    name: str
    points: Sequence[tuple[float, float]]


def lines(curves: Sequence[Line], mark: float | None = None) -> str:
    """Curves in the order of the legend's colours; `mark` is an upright line."""
    height, left, low, top = 360, 50, 30, 14

    def at(x: float, y: float) -> tuple[float, float]:
        return left + x * (WIDTH - left - 20), top + (1 - y) * (height - low - top)

    parts = list[str]()
    for share in (0, 0.2, 0.4, 0.6, 0.8, 1):
        (x, bottom), (_, y) = at(share, 0), at(0, share)
        parts += [
            f'<line class="grid" x1="{left}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text class="soft" x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{share:g}</text>',
            f'<text class="soft" x="{x:.1f}" y="{bottom + 20:.1f}" text-anchor="middle">{share:g}</text>',
        ]
    if mark is not None:
        (x, bottom), (_, y) = at(mark, 0), at(mark, 1)
        parts.append(f'<line class="before" x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{bottom:.1f}"/>')
    for colour, curve in enumerate(curves):
        told = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in curve.points)
        parts.append(f'<polyline class="curve line-{colour % COLOURS}" points="{told}"/>')
    return _chart(height, "".join(parts))


def cloud(space: Space, languages: Sequence[str]) -> str:
    """The pages as dots, coloured by language, counterparts joined by a line; titles show when pointed at."""
    height, edge = 520, 30

    def at(spot: Spot) -> tuple[float, float]:
        return edge + (spot.x + 1) / 2 * (WIDTH - 2 * edge), edge + (1 - spot.y) / 2 * (height - 2 * edge)

    lines, dots = list[str](), list[str]()
    named = len(space.spots) <= 40
    for i, spot in enumerate(space.spots):
        x, y = at(spot)
        if spot.pair > i:
            x2, y2 = at(space.spots[spot.pair])
            lines.append(f'<line class="pair" x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
        colour = languages.index(spot.language) % COLOURS
        title = escape(f"{spot.title} – {spot.url}")
        dots.append(f'<circle class="fill-{colour}" cx="{x:.1f}" cy="{y:.1f}" r="6"><title>{title}</title></circle>')
        if named:
            # above the dot and away from its line
            dots.append(
                f'<text class="soft" x="{x:.1f}" y="{y - 11:.1f}" text-anchor="{_anchor(x)}">{escape(spot.title)}</text>'
            )
    return _chart(height, "".join(lines + dots))


def _chart(height: float, drawn: str) -> str:
    return f'<div class="chart"><svg viewBox="0 0 {WIDTH} {height}" role="img">{drawn}</svg></div>'


def _anchor(x: float) -> str:
    return "start" if x < WIDTH * 0.15 else "end" if x > WIDTH * 0.85 else "middle"


def legend(names: Sequence[str]) -> str:
    """Which colour is what."""
    cells = "".join(
        f'<span><svg viewBox="0 0 12 12"><circle class="fill-{i % COLOURS}" cx="6" cy="6" r="6"/></svg>{escape(name)}</span>'
        for i, name in enumerate(names)
    )
    return f'<div class="legend">{cells}</div>'
