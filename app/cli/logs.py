"""Logging to standard error, as text or JSON."""

from __future__ import annotations

import json
import logging
import sys

from app.core.settings import Settings


class JsonFormatter(logging.Formatter):
    """Formats each record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The record with time, level, logger and message."""
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure(settings: Settings) -> None:
    """Configure the root logger from the settings."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(JsonFormatter() if settings.log_json else text)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("app", "ingestion", "eval", "uvicorn"):
        logging.getLogger(name).setLevel(settings.log_level.upper())
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
