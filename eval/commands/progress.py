"""A progress bar on a terminal, without log messages of the pipeline in between."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def quiet_pipeline() -> Iterator[None]:
    """Hide warnings about failed helper steps: the result counts them, and a log line for each would hide the progress
    bar.
    """
    log = logging.getLogger("app.pipeline")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def report_reindexing(name: str) -> None:
    """Say which configuration's pages are indexed: this takes time."""
    sys.stderr.write(f"Indexing the pages for {name}\n")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many of how many are done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
