"""How far a run is, in a file beside the index: readers of an empty index are told until the run publishes it."""

import json
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

FILE = "reading.json"
FRESH = 120.0
"""Seconds after which a file was left by a run that was killed."""


def tell_reading(directory: Path, done: int, total: int, seconds: float) -> None:
    """Write that so many pages of so many are read after these seconds. A file that can't be written costs only this."""
    minutes = math.ceil(seconds / done * (total - done) / 60) if done else 0
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
        new = directory / f"{FILE}.{os.getpid()}"
        new.write_text(json.dumps({"done": done, "total": total, "minutes": max(1, minutes)}), encoding="utf-8")
        new.replace(directory / FILE)


def forget_reading(directory: Path) -> None:
    """Remove the file, at the end of a run."""
    with suppress(OSError):
        (directory / FILE).unlink(missing_ok=True)


def reading(directory: Path | None) -> Mapping[str, int] | None:
    """`done` and `total` pages and the `minutes` left of the run at this index; None if none is known."""
    if directory is None:
        return None
    try:
        if time.time() - (directory / FILE).stat().st_mtime > FRESH:
            return None
        told = json.loads((directory / FILE).read_text(encoding="utf-8"))
        return {name: int(told[name]) for name in ("done", "total", "minutes")}
    except (OSError, ValueError, TypeError, KeyError):
        return None
