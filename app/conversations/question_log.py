"""The question log: opens it, and says which questions are meant. Its figures are queries of `log_figures`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.core.errors import RequestError, quoted
from app.core.settings import Settings

if TYPE_CHECKING:
    from app.conversations.database import Database

WEAK = 1.25
"""An answer is weak if its evidence is less than so many times the needed one. Of answers below it, the right page was found
for half of the questions of `eval/sets`; above it, for nine tenths."""
SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}
PERIOD_OPTIONS = (
    click.Option(
        ["--since"], default="30d", metavar="TIME", help="how long ago, such as 30d or 12h, or a day (default 30d)"
    ),
    click.Option(["--until"], default="", metavar="TIME", help="the end of the period (default: now)"),
)
_AGO = re.compile(r"(\d{1,5})([hdw])")


@dataclass(frozen=True, slots=True)
class Asked:
    """Choice of questions: from `since` until before `until` (seconds since 1970), of one assistant or of all.

    Only those with this `key`, in this `language`, with one of these `outcomes`, with this `rating` (`none`: without one), of the kind
    `only` (as in `log_figures.kind`), `equal` to the question of this id, and with all words of this `text`; empty values choose all.

    An answer is weak if it begins with "Perhaps" or has a mark, or its evidence is less than `weak` times the needed one. Failures are
    refusals, weak answers and answers that were rated down.
    """

    since: float
    until: float
    assistant: str = ""
    weak: float = WEAK
    language: str = ""
    outcomes: Sequence[str] = ()
    rating: str = ""
    text: str = ""
    key: str = ""
    only: str = ""
    equal: str = ""

    def on(self, day: str) -> Asked:
        """The same on this day in UTC alone, such as 2026-11-29. Raises `RequestError` for any other text."""
        try:
            begin = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
        except ValueError as error:
            raise RequestError(f"day: {quoted(day)} is no day. Write it as 2026-11-29.", param="day") from error
        return replace(self, since=begin, until=begin + SECONDS["d"])

    @classmethod
    def read(cls, since: str, until: str, now: float, assistant: str = "") -> Asked:
        """The questions between two times. An empty `until` is now. Raises `RequestError` that names the invalid one."""
        asked = cls(_time("since", since, now), _time("until", until, now) if until else now, assistant)
        if asked.since >= asked.until:
            raise RequestError("since: it must be before the end of the period.", param="since")
        return asked

    @property
    def before(self) -> float:
        """The beginning of the time of the same length before."""
        return self.since - (self.until - self.since)


def _time(name: str, text: str, now: float) -> float:
    if ago := _AGO.fullmatch(text.strip().lower()):
        return max(now - int(ago[1]) * SECONDS[ago[2]], 0.0)
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


@contextmanager
def opened_log(settings: Settings, directory: Path | None) -> Iterator[Database]:
    """Context of the question log. A database that DOCS_DATABASE doesn't name is in the directory of the index, or in `data`. Raises `RequestError` if nothing is kept, and a `DatabaseError` if there is no database."""
    if not settings.retention_days:
        raise RequestError(
            "DOCS_RETENTION_DAYS is 0: no question is kept, so there is nothing to report.", code="no_log"
        )
    from app.conversations.database import REPORTS, Database, url_of, version_of
    from app.conversations.tables import CHANGES

    url = url_of(settings.database, directory or Path("data"))
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise RequestError(
            f"{url.database} doesn't exist: no question was asked yet, or DOCS_DATABASE names another database.",
            code="no_log",
        )
    database = Database(url, REPORTS)
    try:
        if database.read(version_of) != 1 + len(CHANGES):
            database.migrate()
        yield database
    finally:
        database.close()


def nothing_logged(settings: Settings, asked: Asked, log_from: float, kind: str = "all") -> RequestError:
    """The error for a period without questions, with the reason as far as it is known."""
    which = "question" if kind == "all" else f"question of the kind {kind!r}"
    text = f"No {which} was logged from {iso(asked.since)} until {iso(asked.until)}."
    if settings.question_log == "off":
        text += " DOCS_QUESTION_LOG is off: set it to text or hashed, and questions asked from then on are logged."
    elif kind != "all" or settings.question_log == "hashed":
        text += " With DOCS_QUESTION_LOG=hashed, the log has no texts." if settings.question_log == "hashed" else ""
    elif log_from:
        text += f" The log begins at {iso(log_from)}; questions are kept for {settings.retention_days} days."
    else:
        text += " The log is empty: it has what was asked since this release was installed."
    return RequestError(text, code="no_log")
