"""While questions are asked: a progress bar on a terminal, and a pipeline that doesn't talk into it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def quiet_pipeline() -> Iterator[None]:
    """Failed helper steps are counted in the result; a log line for each would drown the progress bar."""
    log = logging.getLogger("app.pipeline")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def report_reindexing(name: str) -> None:
    """Making an index takes its time."""
    sys.stderr.write(f"Indexing the pages anew: {name}\n")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Tells how many of how many are done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
