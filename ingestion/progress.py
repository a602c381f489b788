"""The progress of a run: a bar on a terminal, lines in a log."""

import math
import time
from pathlib import Path
from typing import Any, TextIO

from app.index.run_history import forget_reading, tell_reading

EVERY = 5.0
"""Seconds between two lines of a log."""
TOLD_EVERY = 1.0
"""Seconds between two times that readers are told."""


class Pace:
    """Counts what is done of a stage, and estimates how long the rest takes.

    The first part isn't counted into the speed: while it is read, the models are loaded and the processes start.
    """

    def __init__(self, total: int = 0) -> None:
        self.total, self.done, self.began = total, 0, time.monotonic()
        self._first, self._first_at = 0, self.began

    def advance(self, n: int) -> None:
        """Count `n` more as done."""
        if not self.done:
            self._first, self._first_at = n, time.monotonic()
        self.done += n

    @property
    def seconds(self) -> float:
        """How long the stage has taken so far."""
        return max(time.monotonic() - self.began, 1e-6)

    @property
    def minutes_left(self) -> int:
        """The whole minutes that the rest takes; 0 if nothing is left, or if the speed isn't known yet."""
        counted = self.done - self._first
        rest = max(0, self.total - self.done)
        return math.ceil((time.monotonic() - self._first_at) / counted * rest / 60) if counted else 0


class Progress:
    """The progress of a run; this one shows nothing."""

    def stage(self, name: str, total: int) -> None:
        """Start the next part of the run; a total of 0 means unknown."""

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count `n` more as done; `note` names the last one."""

    def close(self) -> None:
        """End the display, whether or not the run succeeded."""


class LogProgress(Progress):
    """A plain line at the start and end of each stage and every few seconds between."""

    def __init__(self, stream: TextIO, every: float = EVERY) -> None:
        self._stream = stream
        self._every = every
        self._name, self._pace, self._written_at = "", Pace(), time.monotonic()

    def stage(self, name: str, total: int) -> None:
        """End the previous stage and name the new one."""
        self.close()
        self._name, self._pace, self._written_at = name, Pace(total), time.monotonic()
        self._write(f"{name} ..." if not total else f"{name}: {total} ...")

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count, and write a line when the interval is over."""
        self._pace.advance(n)
        if time.monotonic() - self._written_at >= self._every:
            self._written_at = time.monotonic()
            self._write(f"{self._name}: {self._figures()}{f', {note}' if note else ''}")

    def close(self) -> None:
        """Ends the stage."""
        if self._name and self._pace.done:
            self._write(f"{self._name}: {self._figures()}, done")
        self._name = ""

    def _figures(self) -> str:
        pace = self._pace
        of = f" of {pace.total} ({100 * pace.done // pace.total} %)" if pace.total else ""
        time_left = f", about {minutes} min left" if (minutes := pace.minutes_left) else ""
        return f"{pace.done}{of}, {pace.done / pace.seconds:.1f} a second{time_left}"

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


class BarProgress(Progress):
    """A bar with the rate and the time left."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns: tuple[Any, ...] = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", style="dim"),
        )
        self._bar = Progress(*columns, console=Console(file=stream), transient=False)
        self._task: Any = None

    def stage(self, name: str, total: int) -> None:
        """A new bar below the one before."""
        self._bar.start()
        self._end()
        self._task = self._bar.add_task(name, total=total or None, rate="", note="")

    def advance(self, n: int = 1, note: str = "") -> None:
        """Moves the bar."""
        if self._task is None:
            return
        task = self._bar.tasks[-1]
        rate = f"{task.finished_speed or task.speed or 0:.1f}/s"
        self._bar.update(self._task, advance=n, rate=rate, note=note[-48:])

    def close(self) -> None:
        """Leaves the bars as they are."""
        self._end()
        self._bar.stop()

    def _end(self) -> None:
        if self._task is not None:
            task = self._bar.tasks[-1]
            self._bar.update(self._task, note="", total=task.total or max(task.completed, 1))
            if not task.total:
                self._bar.update(self._task, completed=max(task.completed, 1))
        self._task = None


class ToldProgress(Progress):
    """Shows the progress, and tells readers of the index in this directory how many pages are read."""

    def __init__(self, shown: Progress, directory: Path, trigger: str) -> None:
        self._shown = shown
        self._trigger = trigger
        self._directory = directory
        self._pace, self._told_at = Pace(), 0.0

    def stage(self, name: str, total: int) -> None:
        """Start the next part of the run."""
        self._shown.stage(name, total)
        self._pace, self._told_at = Pace(total), 0.0
        self._tell()

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count."""
        self._shown.advance(n, note)
        self._pace.advance(n)
        self._tell()

    def close(self) -> None:
        """End the display; the index has what was read."""
        self._shown.close()
        forget_reading(self._directory)

    def _tell(self) -> None:
        now = time.monotonic()
        pace = self._pace
        if pace.total and now - self._told_at >= TOLD_EVERY:
            self._told_at = now
            began = time.time() - pace.seconds
            tell_reading(self._directory, pace.done, pace.total, pace.minutes_left, began=began, trigger=self._trigger)


def open_progress(stream: TextIO, directory: Path | None = None, trigger: str = "") -> Progress:
    """A bar where the stream is a terminal, else lines. Readers of an index in this `directory` are told, too, with what started it."""
    shown = BarProgress(stream) if stream.isatty() else LogProgress(stream)
    return ToldProgress(shown, directory, trigger) if directory else shown
