"""A log message with fields: one word after another in a text log, real fields in a JSON log."""

from __future__ import annotations

import re
from typing import Any

MAX_FIELD_CHARS = 200
LONG = frozenset({"error", "message", "text"})  # fields that may be ten times as long
_WORD = re.compile(rf"[!#-&(-<>-~]{{1,{MAX_FIELD_CHARS}}}")  # ASCII without quotation marks and =
_UNQUOTED = re.compile(r"[^\s\"'=]+")


class LogMessage:
    """The message of one log call, such as `log.info(LogMessage("ingest ended", run="r1", state="done"))`.

    As text it is `ingest ended run=r1 state=done`. Values that aren't one word are quoted, so that they can't forge lines
    or fields. `app.cli.logs` writes `fields` as JSON.
    """

    __slots__ = ("fields", "text")

    def __init__(self, text: str, /, **fields: Any) -> None:
        self.text = text
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.text, *(f"{name}={_printable(name, value)}" for name, value in self.fields.items())])


def shortened(name: str, text: str) -> str:
    """The text of the field with this name, cut if it is too long."""
    most = MAX_FIELD_CHARS * 10 if name in LONG else MAX_FIELD_CHARS
    return text if len(text) <= most else f"{text[:most]}…"


def _printable(name: str, value: object) -> str:
    if isinstance(value, int | float) or (isinstance(value, str) and _WORD.fullmatch(value)):  # most of them
        return str(value)
    text = shortened(name, str(value))
    return text if _UNQUOTED.fullmatch(text) and text.isprintable() else repr(text)
