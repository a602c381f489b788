"""Logging to standard error, as text or JSON."""

import json
import logging
import os
import sys
from typing import Any

from app.core.log_message import LogMessage, shortened
from app.core.settings import Settings

TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class TextFormatter(logging.Formatter):
    """Formats each record as one line, and a traceback below it, indented.

    What isn't printable is escaped, so that no message of another server makes up lines.
    """

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name in logging.Formatter
        """The line."""
        return _escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802  # the name in logging.Formatter
        """The traceback."""
        return "\n".join(f"  {_escaped(line)}" for line in super().formatException(ei).splitlines())


def _escaped(line: str) -> str:
    return line if line.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


class JsonFormatter(logging.Formatter):
    """Formats each record as one line of JSON, with the fields of a `LogMessage` as they are."""

    def format(self, record: logging.LogRecord) -> str:
        """The record with time, level, logger and message, then the fields."""
        said = record.msg if isinstance(record.msg, LogMessage) else None
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": said.text if said else record.getMessage(),
        }
        for name, value in said.fields.items() if said else ():
            key = f"{name}_" if name in line else name
            line[key] = value if value is None or isinstance(value, bool | int | float) else shortened(name, str(value))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure(settings: Settings) -> None:
    """Configure the root logger from the settings.

    Of other libraries, only errors are logged: what they warn of is an error or a log line of ours, or for developers. With
    `debug`, their warnings are logged too.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # otherwise it prints a warning when a run is started
    logging.captureWarnings(capture=True)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_json else TextFormatter())
    others = logging.WARNING if settings.log_level == "debug" else logging.ERROR
    logging.basicConfig(level=others, handlers=[handler], force=True)
    for name in ("docs_assistant", "app", "ingestion", "eval", "uvicorn"):
        logging.getLogger(name).setLevel(settings.log_level.upper())
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
