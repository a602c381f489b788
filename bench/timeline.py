"""The time line of a run, as an SVG: `python -m bench.timeline PICTURE ARGUMENTS`, the arguments of `docs-assistant ingest`.

Each column shows how many cores a fraction of a second of the run kept busy, and with what. Linux only: it reads /proc.
"""

import contextlib
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.sizing import cpu
from docs_assistant.cli import main as command

EVERY = 0.25  # seconds
THINNEST = 0.05  # that is drawn
WIDTH, HEIGHT, LEFT, TOP = 760, 160, 40, 30
COLOURS = {
    "crawl, compare and publish": "#1f4e79",
    "convert and split": "#6aa84f",
    "embed": "#c44e00",
    "write": "#8e7cc3",
}
OWN, CONVERTS, EMBEDS, WRITES = COLOURS
KINDS = {"MainThread": OWN, "local-model": EMBEDS, "convert": OWN}
"""Beginnings of names of threads; those that have no name of Python are the store's."""


def _seconds(process: int | str) -> float:
    with contextlib.suppress(OSError):  # it has just ended
        return cpu(process)
    return 0.0


def _children(pid: int) -> list[int]:
    found = list[int]()
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, listed.read_text("ascii").split()):
                found += [child, *_children(child)]
    return found


def used() -> defaultdict[tuple[str, int], float]:
    """The CPU seconds so far of each thread and each process below this one, by what it does and its id."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    seconds = defaultdict[tuple[str, int], float](float)
    for task in Path("/proc/self/task").iterdir():
        name = names.get(int(task.name), "")
        kind = next((KINDS[start] for start in KINDS if name.startswith(start)), OWN if name else WRITES)
        seconds[kind, int(task.name)] = _seconds(f"self/task/{task.name}")
    for child in _children(os.getpid()):
        seconds[CONVERTS, child] = _seconds(child)
    return seconds


class Sampler(threading.Thread):
    """Samples until it is stopped; `columns` are the busy cores of each interval, by what they did."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.columns: list[Mapping[str, float]] = []
        self._stop_now = threading.Event()

    def run(self) -> None:
        """Sample at intervals."""
        before, at = used(), time.monotonic()
        while not self._stop_now.wait(EVERY):
            now, then = used(), at
            at = time.monotonic()
            column = defaultdict[str, float](float)
            for (kind, id_), seconds in now.items():
                column[kind] += max(0.0, seconds - before[kind, id_]) / (at - then)
            self.columns.append(column)
            before = now

    def stop(self) -> None:
        """Sample no longer."""
        self._stop_now.set()
        self.join()


def plot(columns: Sequence[Mapping[str, float]]) -> str:
    """An SVG of stacked columns, with a line for each core of the machine."""
    cores, wide = os.cpu_count() or 1, (WIDTH - LEFT) / max(len(columns), 1)
    parts = [f'<rect width="{WIDTH}" height="{TOP + HEIGHT + 60}" fill="#fff"/>']
    for number, column in enumerate(columns):
        y = float(TOP + HEIGHT)
        for kind, colour in COLOURS.items():
            high = HEIGHT * column.get(kind, 0) / cores
            if high < THINNEST:
                continue
            y -= high
            parts.append(
                f'<rect x="{LEFT + number * wide:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{colour}"/>'
            )
    for core in range(cores + 1):
        y = TOP + HEIGHT * (1 - core / cores)
        parts.append(f'<path d="M{LEFT} {y:.0f}H{WIDTH}" stroke="#888" stroke-dasharray="2 3"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{core}</text>')
    seconds = len(columns) * EVERY
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = LEFT + share * (WIDTH - LEFT)
        anchor = "start" if not share else "end" if share == 1 else "middle"
        parts.append(f'<text x="{x:.0f}" y="{TOP + HEIGHT + 18}" text-anchor="{anchor}">{seconds * share:.0f} s</text>')
    for number, (kind, colour) in enumerate(COLOURS.items()):
        x = LEFT + 190 * number
        parts.append(f'<rect x="{x}" y="{TOP + HEIGHT + 34}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="{TOP + HEIGHT + 44}">{kind}</text>')
    parts.append(f'<text x="{LEFT}" y="{TOP - 12}" font-weight="bold">busy cores, of {cores}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + HEIGHT + 60}" font-family="sans-serif"'
    return f'{head} font-size="12">{"".join(parts)}</svg>\n'


def main() -> None:
    """Run the command, and write the picture of it."""
    picture, *arguments = sys.argv[1:]
    sys.argv = ["docs-assistant", "ingest", *arguments]
    sampler = Sampler()
    sampler.start()
    try:
        command()
    finally:
        sampler.stop()
        Path(picture).write_text(plot(sampler.columns), "utf-8")
        whole = sum(sum(column.values()) for column in sampler.columns) / max(len(sampler.columns), 1)
        print(f"{len(sampler.columns) * EVERY:.0f} s, {whole:.2f} cores on average: {picture}", file=sys.stderr)


if __name__ == "__main__":
    main()
