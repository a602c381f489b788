"""Keeps the last warnings and errors of this process for operators."""

from __future__ import annotations

import logging
import re
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.core.log_message import LogMessage
from app.core.masking import masked
from app.core.request_id import REQUEST_ID

MOST = 100
LONGEST = 1000
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class RecentProblem:
    """A message of the log. `count` says how often it came, up to its numbers; the other fields are of the last time.

    Of an unexpected error, only its kind and place are kept: its text may hold what a reader wrote.
    """

    level: str
    logger: str
    message: str
    exception: str
    request_id: str
    first_at: str
    last_at: str
    count: int = 1


class RecentProblems(logging.Handler):
    """Keeps the last `MOST` different warnings and errors."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: OrderedDict[tuple[str, str, str], RecentProblem] = OrderedDict()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Context in which the messages of all loggers are kept."""
        logging.getLogger().addHandler(self)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(self)

    def all(self) -> tuple[RecentProblem, ...]:
        """The kept ones, the latest first."""
        self.acquire()
        try:
            return tuple(reversed(self._kept.values()))
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep this record."""
        try:
            self._keep(_problem(record))
        except Exception:  # noqa: BLE001  # as every handler: a broken message must not break what logs it
            self.handleError(record)

    def _keep(self, problem: RecentProblem) -> None:
        key = problem.level, problem.logger, _NUMBER.sub("0", problem.message + problem.exception)
        if known := self._kept.pop(key, None):
            problem.count, problem.first_at = known.count + 1, known.first_at
        self._kept[key] = problem
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)


def _problem(record: logging.LogRecord) -> RecentProblem:
    said, id_ = record.msg, REQUEST_ID.get()
    if isinstance(said, LogMessage):
        id_ = str(said.fields.get("id", id_))
        unexpected = ("message",) if record.exc_info else ()
        text = str(LogMessage(said.text, **{k: v for k, v in said.fields.items() if k not in ("id", *unexpected)}))
    else:
        text = record.getMessage().partition("\n")[0]
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds")
    shown = masked(text)
    shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
    return RecentProblem(record.levelname.lower(), record.name, shown, _exception(record), id_, at, at)


def _exception(record: logging.LogRecord) -> str:
    """Kind and place of the exception, such as `KeyError in steps/cite.py:12, links`."""
    kind, _, trace = record.exc_info or (None, None, None)
    if kind is None:
        return ""
    frames = traceback.extract_tb(trace)
    if not frames:
        return kind.__name__
    last = frames[-1]
    return f"{kind.__name__} in {'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}, {last.name}"
