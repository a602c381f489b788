"""Request headers of a source: cookies and tokens that are in the environment or in files, never in the source itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from app.core.errors import SettingsError

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_REFERENCE = re.compile(r"(?P<before>(?:[A-Za-z]+ |[\w.-]+=)?)(?P<kind>env|file):(?P<place>\S(?:.*\S)?)")
_OURS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "host", "if-modified-since", "if-none-match", "te"}
    | {"transfer-encoding", "upgrade"}
)
"""Headers that make a request work."""


def headers_as_json(value: object) -> str:
    """The headers of a source as JSON, so that sources stay comparable. Raises ValueError, which never shows a value."""
    if isinstance(value, str):
        value = json.loads(value) if value.startswith("{") else value
    if not isinstance(value, dict):
        raise ValueError('isn\'t a table of headers: write { Authorization = "Bearer env:NAME" }')  # noqa: TRY004  # for pydantic
    for name, written in value.items():
        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            raise ValueError(f"{name[:100]!r} is no header that can be set")
        if not isinstance(written, str) or not _REFERENCE.fullmatch(written):
            raise ValueError(
                f"{name} must name where its value is: env:NAME or file:PATH, also as Bearer env:NAME or session=env:NAME"
            )
    return json.dumps(value, sort_keys=True)


def from_directory(headers: str, directory: Path) -> str:
    """The same headers; relative paths of files start from this directory."""

    def absolute(text: str) -> str:
        match = _REFERENCE.fullmatch(text)
        if not match or match["kind"] == "env":
            return text
        return f"{match['before']}file:{directory.resolve() / match['place']}"

    return json.dumps({name: absolute(text) for name, text in json.loads(headers).items()})


def pem_place(text: str) -> str:
    """Where a source says that a certificate or key is, as file:PATH or env:NAME. Raises ValueError, which never shows a value."""
    if "-----" in text or "\n" in text:
        raise ValueError("must name where it is: a file, or env:NAME")
    return text if not text or text.startswith(("env:", "file:")) else f"file:{text}"


def pem_from_directory(place: str, directory: Path) -> str:
    """The same place; the relative path of a file starts from this directory."""
    return f"file:{directory.resolve() / place.removeprefix('file:')}" if place.startswith("file:") else place


def read_headers(headers: str, url: str) -> Mapping[str, str]:
    """The headers to send to the source at `url`. Raises `SettingsError` for a variable or file that isn't there."""
    return {name: _value(text, f"{url}: headers: {name}") for name, text in json.loads(headers).items()}


def _value(text: str, what: str) -> str:
    match = _REFERENCE.fullmatch(text)
    assert match is not None
    place = match["place"]
    if match["kind"] == "env":
        value, where = os.environ.get(place, "").strip(), f"the environment variable {place}"
    else:
        where = f"the file {place}"
        try:
            value = Path(place).read_text("utf-8-sig").strip()
        except OSError as error:
            raise SettingsError(f"{what}: {where} can't be read: {error.strerror}.") from error
        except UnicodeDecodeError:
            raise SettingsError(f"{what}: {where} isn't text.") from None
    if not value:
        raise SettingsError(f"{what}: {where} is not set or empty.")
    if not value.isascii() or not value.isprintable():
        raise SettingsError(f"{what}: {where} has characters that no header can have, such as a line break.")
    return match["before"] + value
