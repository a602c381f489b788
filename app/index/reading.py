"""How far a run is, in a file beside the index: readers of an empty index are told until the run publishes it."""

import json
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

FILE = "reading.json"
FRESH = 120.0
"""Seconds after which a file was left by a run that was killed."""


def minutes_left(done: int, total: int, seconds: float) -> int:
    """The whole minutes that the rest takes, if so much is done after these seconds; 0 if nothing is, or nothing is left."""
    return max(0, math.ceil(seconds / done * (total - done) / 60)) if done else 0


def tell_reading(directory: Path, done: int, total: int, seconds: float, trigger: str = "") -> None:
    """Write that so many pages of so many are read after these seconds. A file that can't be written costs only this.

    `trigger` is that of the run.
    """
    told = {
        "done": done,
        "total": total,
        "minutes": max(1, minutes_left(done, total, seconds)),
        "trigger": trigger,
        "began": time.time() - seconds,
    }
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
        new = directory / f"{FILE}.{os.getpid()}"
        new.write_text(json.dumps(told), encoding="utf-8")
        new.replace(directory / FILE)


def forget_reading(directory: Path) -> None:
    """Remove the file, at the end of a run."""
    with suppress(OSError):
        (directory / FILE).unlink(missing_ok=True)


def reading(directory: Path | None) -> Mapping[str, int] | None:
    """`done` and `total` pages and the `minutes` left of the run at this index; None if none is known."""
    told = run_reading(directory)
    return None if told is None else {name: told[name] for name in ("done", "total", "minutes")}


def run_reading(directory: Path | None) -> Mapping[str, Any] | None:
    """The same, with the `trigger` of the run, and when it `began` to read, in Unix seconds."""
    if directory is None:
        return None
    try:
        if time.time() - (directory / FILE).stat().st_mtime > FRESH:
            return None
        told = json.loads((directory / FILE).read_text(encoding="utf-8"))
        numbers = {name: int(told[name]) for name in ("done", "total", "minutes")}
        return {**numbers, "trigger": str(told["trigger"]), "began": float(told["began"])}
    except (OSError, ValueError, TypeError, KeyError):
        return None
