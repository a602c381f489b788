"""The table and the plot of a measurement, from the files that it wrote; also while it goes on."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from bench.overload import quantile
from bench.soak.judge import FINE, Fault, Seen, explained

WARM_UP = 600.0  # seconds in which caches fill; its last tenth of the measurement is what later memory is compared with
MOST_GROWTH = 0.05  # of memory, from the warm-up to the end
SHORT = 1800.0  # seconds of a measurement that is too short to judge growth
MOST_DESCRIPTORS = 8  # more at the end than at the half
WIDTH, LEFT, RIGHT, HEIGHT, GAP = 1000, 60, 970, 150, 34
FAMILIES = {
    "model": "model", "store": "store", "database": "database", "service": "restart", "site": "site or run", "run": "site or run",
    "disk": "site or run",
}  # fmt: skip
COLOURS = {"model": "#4c78a8", "store": "#e45756", "database": "#b279a2", "restart": "#555", "site or run": "#f58518"}


@dataclass
class Measured:
    """All that was written."""

    seen: list[Seen]
    runs: list[Seen]
    faults: list[Fault]
    samples: list[Mapping[str, float]]
    seconds: float


def load(folder: Path) -> Measured:
    """Read the files of a folder."""

    def rows(name: str) -> list[Any]:
        file = folder / name
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    faults = {row["began"]: Fault(**row) for row in rows("faults.jsonl")}  # written at the beginning and at the end
    seconds = json.loads((folder / "settings.json").read_text("utf-8"))["seconds"]
    return Measured(
        [Seen(**r) for r in rows("requests.jsonl")], [Seen(**r) for r in rows("runs.jsonl")], list(faults.values()), rows("samples.jsonl"), seconds,
    )  # fmt: skip


def verdict(measured: Measured) -> list[str]:
    """What didn't hold; empty if all did."""
    problems = []
    for seen in [*measured.seen, *measured.runs]:
        if seen.outcome not in FINE and not explained(seen, measured.faults):
            problems.append(f"{seen.kind} at {seen.began:.1f} s: {seen.outcome} {seen.detail[:200]}")
        problems += [
            f"{seen.kind} at {seen.began:.1f} s: link {url}" for url, said in seen.links.items() if said == "missing"
        ]
    if measured.seconds < SHORT:
        return problems
    warm, half, end = (tenth(measured, share) for share in (WARM_UP / measured.seconds, 0.5, 1.0))
    if warm and end and end["rss_mb"] > warm["rss_mb"] * (1 + MOST_GROWTH):
        problems.append(f"memory grew from {warm['rss_mb']:.0f} to {end['rss_mb']:.0f} MB after the warm-up")
    if half and end and end["descriptors"] > half["descriptors"] + MOST_DESCRIPTORS:
        problems.append(f"descriptors grew from {half['descriptors']:.0f} to {end['descriptors']:.0f}")
    return problems


def tenth(measured: Measured, share: float) -> Mapping[str, float]:
    """The medians of the samples in the tenth of the time that ends with this share of it."""
    first, last = (share - 0.1) * measured.seconds, share * measured.seconds
    chosen = [one for one in measured.samples if first <= one["at"] <= last and one["rss_mb"]]
    return {name: statistics.median(one[name] for one in chosen) for name in chosen[0]} if chosen else {}


def slope(measured: Measured, name: str) -> float:
    """Growth an hour in the second half, by linear regression."""
    points = [
        (one["at"] / 3600, one[name]) for one in measured.samples if one["at"] >= measured.seconds / 2 and one["rss_mb"]
    ]
    return statistics.linear_regression(*zip(*points, strict=True)).slope if len(points) > 2 else 0.0


def table(measured: Measured) -> str:
    """The figures as Markdown."""
    return "\n\n".join(
        "\n".join(lines)
        for lines in (_requests(measured), _faults(measured), _runs(measured), _links(measured), _resources(measured))
    )


def _markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    return [f"| {' | '.join(map(str, row))} |" for row in (header, ["---"] * len(header), *rows)]


def _requests(measured: Measured) -> list[str]:
    kinds: dict[str, list[Seen]] = defaultdict(list)
    for seen in measured.seen:
        kinds[seen.kind].append(seen)
    kinds["all"] = measured.seen
    rows = []
    for kind, all_ in kinds.items():
        bad = [seen for seen in all_ if seen.outcome not in FINE]
        unexplained = [seen for seen in bad if not explained(seen, measured.faults)]
        quoted = sum(seen.outcome == "extractive" for seen in bad)
        times = [seen.ended - seen.began for seen in all_ if seen.outcome in FINE]
        rows.append(
            (kind, len(all_), sum(seen.retries > 0 for seen in all_), quoted, len(bad) - quoted, len(unexplained), f"{quantile(times, 50):.2f}", f"{quantile(times, 95):.2f}")
        )  # fmt: skip
    return _markdown(
        (
            "requests",
            "number",
            "tried again",
            "answered with quotations",
            "errors",
            "without a fault that explains it",
            "p50 s",
            "p95 s",
        ),
        rows,
    )


def _faults(measured: Measured) -> list[str]:
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for seen in [*measured.seen, *measured.runs]:
        if seen.outcome not in FINE:
            outcomes[explained(seen, measured.faults) or "none"][seen.outcome] += 1
    kinds = Counter(fault.kind for fault in measured.faults)
    seconds = Counter[str]()
    for fault in measured.faults:
        seconds[fault.kind] += round(max(0.0, min(fault.ended, measured.seconds) - fault.began))
    rows = [
        (kind, kinds[kind], seconds[kind], ", ".join(f"{name} {number}" for name, number in outcomes[kind].most_common()) or "-")
        for kind in (*kinds, "none")
    ]  # fmt: skip
    return _markdown(("fault", "times", "s", "what clients and runs got"), rows)


def _runs(measured: Measured) -> list[str]:
    rows = [
        (f"{run.began:.0f}", f"{run.ended - run.began:.1f}", run.note.get("fault") or "-", run.outcome, run.detail.replace("|", "/").replace("\n", " ")[-160:])
        for run in measured.runs
    ]  # fmt: skip
    return _markdown(("re-index at s", "took s", "fault", "outcome", "what it said last"), rows)


def _links(measured: Measured) -> list[str]:
    said = Counter(verdict for seen in measured.seen for verdict in seen.links.values())
    answers = sum(bool(seen.links) for seen in measured.seen)
    different = len({url for seen in measured.seen for url in seen.links})
    text = (
        f"Links: {sum(said.values())} in {answers} answers and lists of results, {different} different ones; "
        f"{said['missing']} lead nowhere; {said['stale']} are from a page that the site couldn't serve since, and existed then."
    )
    return [text]


def _resources(measured: Measured) -> list[str]:
    names = {"rss_mb": "memory MB", "descriptors": "descriptors", "threads": "threads", "cpu": "CPU cores"}
    moments = [tenth(measured, share) for share in (0.1, 0.5, 1.0)]
    rows = [
        (shown, *(f"{one[name]:.2f}".removesuffix(".00") if one else "-" for one in moments), _growth(measured, name))
        for name, shown in names.items()
    ]
    return _markdown(("of the service", "at 10 %", "at 50 %", "at 100 %", "growth an hour in the second half"), rows)


def _growth(measured: Measured, name: str) -> str:
    """The slope of the second half, also as a share of the value at the half."""
    an_hour, half = slope(measured, name), tenth(measured, 0.5).get(name, 0.0)
    return f"{an_hour:+.2f} ({an_hour / half:+.1%})" if half else f"{an_hour:+.2f}"


def plot(measured: Measured) -> str:
    """An SVG: memory, descriptors, and p95 of each minute, with the faults as bands and the runs as ticks."""
    samples, minutes = [one for one in measured.samples if one["rss_mb"]], _minutes(measured)
    panels = (
        ("memory, MB", [("memory", [(one["at"], one["rss_mb"]) for one in samples])]),
        ("descriptors, threads", [(name, [(one["at"], one[name]) for one in samples]) for name in ("descriptors", "threads")]),
        ("p95 of a minute, s", list(minutes.items())),
    )  # fmt: skip
    height = len(panels) * (HEIGHT + GAP) + 40
    parts = [_band(fault, measured.seconds, height - 44) for fault in measured.faults]
    for run in measured.runs[1:]:
        x = _x(run.began, measured.seconds)
        parts.append(f'<path d="M{x} {height - 52}v12" stroke="#000" stroke-width="2"/>')
    for number, (title, curves) in enumerate(panels):
        parts += _panel(number * (HEIGHT + GAP) + 24, title, curves, measured.seconds)
    step = 10 if measured.seconds > 1200 else 1
    for minute in range(0, round(measured.seconds / 60) + 1, step):
        parts.append(
            f'<text x="{_x(60 * minute, measured.seconds)}" y="{height - 26}" text-anchor="middle">{minute} min</text>'
        )
    x = LEFT
    for kind in dict.fromkeys(map(_family, measured.faults)):
        parts.append(
            f'<rect x="{x}" y="{height - 17}" width="12" height="12" fill="{COLOURS[kind]}" opacity=".4"/><text x="{x + 16}" y="{height - 6}">{kind}</text>'
        )
        x += 110
    parts.append(f'<text x="{x}" y="{height - 6}">▏re-index</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _minutes(measured: Measured) -> dict[str, list[tuple[float, float]]]:
    groups = {"search as you type": "search as you type", "first text of a stream": "chat, streamed"}
    found: dict[str, list[tuple[float, float]]] = {}
    for name, kind in groups.items():
        by: dict[int, list[float]] = defaultdict(list)
        for seen in measured.seen:
            if seen.kind == kind and seen.first and seen.outcome in FINE | {"extractive"}:
                by[int(seen.began // 60)].append(seen.first)
        found[name] = [(60 * minute + 30, quantile(times, 95)) for minute, times in sorted(by.items())]
    return found


def _family(fault: Fault) -> str:
    return FAMILIES[fault.kind.split()[0]]


def _x(seconds: float, whole: float) -> str:
    return f"{LEFT + (RIGHT - LEFT) * min(1, seconds / whole):.1f}"


def _band(fault: Fault, whole: float, height: int) -> str:
    left, right = float(_x(fault.began, whole)), float(_x(min(fault.ended, whole), whole))
    return (
        f'<rect x="{left}" y="20" width="{max(1.5, right - left):.1f}" height="{height - 20}" '
        f'fill="{COLOURS[_family(fault)]}" opacity=".25"><title>{escape(fault.kind)}</title></rect>'
    )


def _panel(
    top: int, title: str, curves: Sequence[tuple[str, Sequence[tuple[float, float]]]], whole: float
) -> list[str]:
    most = max((value for _, points in curves for _, value in points), default=1) * 1.1 or 1
    parts = [f'<path d="M{LEFT} {top}V{top + HEIGHT}H{RIGHT}" stroke="#888" fill="none"/>']
    for share in (0, 0.5, 1):
        y, value = top + HEIGHT * (1 - share), most * share
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{value:.{0 if most > 10 else 1}f}</text>')
    names = []
    for number, (name, points) in enumerate(curves):
        colour = ("#1f4e79", "#c44e00")[number % 2]
        line = " ".join(f"{_x(at, whole)},{top + HEIGHT * (1 - value / most):.1f}" for at, value in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        names.append(f'<tspan fill="{colour}"> {escape(name)}</tspan>')
    shown = "".join(names) if len(curves) > 1 else ""
    parts.append(f'<text x="{LEFT + 4}" y="{top - 5}">{escape(title)}:{shown}</text>')
    return parts
