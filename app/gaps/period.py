"""The time that a report is about, as it is written: 30d, 12h, 4w, or a day."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from app.core.errors import RequestError, quoted

SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(\d{1,5})([hdw])")


@dataclass(frozen=True, slots=True)
class Period:
    """From `since` until before `until`, in seconds since 1970."""

    since: float
    until: float

    @classmethod
    def read(cls, since: str, until: str, now: float) -> Period:
        """The period between two times. An empty `until` is now. Raises `RequestError` that names the invalid one."""
        period = cls(_time("since", since, now), _time("until", until, now) if until else now)
        if period.since >= period.until:
            raise RequestError("since: it must be before the end of the period.", param="since")
        return period


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command for a period."""
    parser.add_argument(
        "--since", default="30d", metavar="TIME", help="how long ago, such as 30d or 12h, or a day (default 30d)"
    )
    parser.add_argument("--until", default="", metavar="TIME", help="the end of the period (default: now)")


def _time(name: str, text: str, now: float) -> float:
    if found := _AGO.fullmatch(text.strip().lower()):
        return max(now - int(found[1]) * SECONDS[found[2]], 0.0)
    try:
        time = datetime.fromisoformat(text.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise RequestError(
            f"{name}: {quoted(text)} is no time. Write how long ago, such as 30d, 12h or 4w, or a day, such as 2026-11-01.",
            param=name,
        ) from error


def iso(time: float) -> str:
    """The time as ISO 8601 in UTC; empty for 0."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds") if time else ""
