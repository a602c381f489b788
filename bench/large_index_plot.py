"""The plot of `bench.large_index`: time of a search, searches a second and memory over the number of chunks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 180, 56, 44, 76
COLOURS = {"LanceDB": "#1f4e79", "OpenSearch": "#c44e00"}
KEYS = ("p95", "rate", "resident")
TITLES = {
    "en": (
        "p95 of a search alone, ms",
        "searches a second, 32 clients",
        "memory of the service, MB",
        "by number of chunks",
    ),
    "cs": ("p95 jednoho hledání, ms", "hledání za sekundu, 32 klientů", "paměť služby, MB", "podle počtu úseků"),
}
Measured = Mapping[str, Sequence[Mapping[str, Any]]]


def plot(measured: Measured, language: str) -> str:
    """An SVG with one panel for each measure; the numbers of chunks are on a logarithmic axis."""
    *titles, axis = TITLES[language]
    chunks = sorted({one["chunks"] for ones in measured.values() for one in ones})
    whole = LEFT + len(KEYS) * (WIDTH + GAP)
    parts = [f'<rect width="{whole}" height="{HEIGHT + 90}" fill="#fff"/>']
    for number, (key, title) in enumerate(zip(KEYS, titles, strict=True)):
        parts += _panel(LEFT + number * (WIDTH + GAP), key, title, measured, chunks)
    for number, (name, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{LEFT + 90 * number}" y="{HEIGHT + 82}" fill="{colour}">{name}</text>')
    parts.append(f'<text x="{LEFT + 190}" y="{HEIGHT + 82}">{axis}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {HEIGHT + 90}" font-family="sans-serif" font-size="12">'
        f"{''.join(parts)}</svg>\n"
    )


def _panel(left: int, key: str, title: str, measured: Measured, chunks: Sequence[int]) -> list[str]:
    largest = max(one[key] for ones in measured.values() for one in ones)
    step = 10 ** math.floor(math.log10(largest)) / 2
    most = math.ceil(largest / step) * step
    first, last = math.log(chunks[0]), math.log(max(chunks[-1], chunks[0] + 1))

    def point(one: Mapping[str, Any]) -> tuple[float, float]:
        share = (math.log(one["chunks"]) - first) / (last - first)
        return left + 12 + share * (WIDTH - 24), TOP + HEIGHT * (1 - one[key] / most)

    parts = [
        f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{title}</text>',
        f'<path d="M{left} {TOP}V{TOP + HEIGHT}H{left + WIDTH}" stroke="#888" fill="none"/>',
    ]
    for share in (0, 0.5, 1):
        y = TOP + HEIGHT * (1 - share)
        parts.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{most * share:.0f}</text>')
    for name, ones in measured.items():
        colour, points = COLOURS[name], [point(one) for one in ones]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    for x, count in {round(point(one)[0], -1): one["chunks"] for ones in measured.values() for one in ones}.items():
        parts.append(f'<text x="{x:.0f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{_short(count)}</text>')
    return parts


def _short(count: int) -> str:
    return f"{round(count / 1000)}k"
