"""The progress of a run: a bar on a terminal, lines in a log."""

import time
from pathlib import Path
from typing import Any, TextIO

from app.index.run_history import forget_reading, minutes_left, tell_reading

EVERY = 5.0
"""Seconds between two lines of a log."""
TOLD_EVERY = 1.0
"""Seconds between two times that readers are told."""


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
        self._name, self._total, self._done = "", 0, 0
        self._began = self._written_at = time.monotonic()

    def stage(self, name: str, total: int) -> None:
        """End the previous stage and name the new one."""
        self.close()
        self._name, self._total, self._done = name, total, 0
        self._began = self._written_at = time.monotonic()
        self._write(f"{name} ..." if not total else f"{name}: {total} ...")

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count, and write a line when the interval is over."""
        self._done += n
        if time.monotonic() - self._written_at >= self._every:
            self._written_at = time.monotonic()
            self._write(f"{self._name}: {self._figures()}{f', {note}' if note else ''}")

    def close(self) -> None:
        """Ends the stage."""
        if self._name and self._done:
            self._write(f"{self._name}: {self._figures()}, done")
        self._name = ""

    def _figures(self) -> str:
        seconds = max(time.monotonic() - self._began, 1e-6)
        of = f" of {self._total} ({100 * self._done // self._total} %)" if self._total else ""
        minutes = minutes_left(self._done, self._total, seconds)
        time_left = f", about {minutes} min left" if minutes else ""
        return f"{self._done}{of}, {self._done / seconds:.1f} a second{time_left}"

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
        self._total, self._done = 0, 0
        self._began = self._told_at = 0.0

    def stage(self, name: str, total: int) -> None:
        """Start the next part of the run."""
        self._shown.stage(name, total)
        self._total, self._done, self._began, self._told_at = total, 0, time.monotonic(), 0.0
        self._tell()

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count."""
        self._shown.advance(n, note)
        self._done += n
        self._tell()

    def close(self) -> None:
        """End the display; the index has what was read."""
        self._shown.close()
        forget_reading(self._directory)

    def _tell(self) -> None:
        now = time.monotonic()
        if self._total and now - self._told_at >= TOLD_EVERY:
            self._told_at = now
            tell_reading(self._directory, self._done, self._total, now - self._began, self._trigger)


def open_progress(stream: TextIO, directory: Path | None = None, trigger: str = "") -> Progress:
    """A bar where the stream is a terminal, else lines. Readers of an index in this `directory` are told, too, with what started it."""
    shown = BarProgress(stream) if stream.isatty() else LogProgress(stream)
    return ToldProgress(shown, directory, trigger) if directory else shown
