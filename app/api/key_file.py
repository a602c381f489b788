"""Reads the file of keys that DOCS_KEYS names: who may ask what, from which pages, and how often."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from app.api.access import Role
from app.assistants.file import Name, Table, read_assistants
from app.core.errors import SettingsError
from app.core.nearest import did_you_mean
from app.core.rates import EXAMPLE
from app.core.settings import Settings
from app.core.settings_types import HASH, Rates, web_origin

ROLES = get_args(Role)


class KeyTable(Table):
    """One key. The descriptions say in error messages what a value must be."""

    name: str = Field(
        pattern=r"^[A-Za-z][\w.-]{0,63}$", description="letters, digits, . _ and -, the first one a letter"
    )
    hash: str = Field(
        pattern=f"^{HASH}$", repr=False, description='"sha256:" and 64 hexadecimal digits, as key new prints it'
    )
    role: Role = Field(description=f"one of {', '.join(ROLES)}")
    assistants: list[Name] = Field([], description='a list of assistants, as ["docs"]; leave it out for all')
    collections: list[Name] = Field([], description='a list of collections, as ["docs"]; leave it out for all')
    origins: list[Annotated[str, AfterValidator(web_origin)]] = Field(
        [], description='a list of origins, as ["https://docs.example.org"]'
    )
    rate: Rates = Field("", description=f"a rate, such as {EXAMPLE}")
    concurrency: int = Field(0, ge=1, description="a number of answers at the same time, at least 1")
    expires: date | None = Field(None, description="a date without quotation marks, as 2027-01-31")
    note: str = Field("", description="a text")

    @property
    def expired(self) -> bool:
        """Whether the last day on which the key works is over."""
        return is_over(self.expires)

    @model_validator(mode="after")
    def _is_complete(self) -> KeyTable:
        for name in ("assistants", "collections", "origins"):
            if name in self.model_fields_set and not getattr(self, name):
                raise ValueError(f"{name} is empty, which would mean no limit: name some, or leave it out")
        if (self.role == "widget") != bool(self.origins):
            raise ValueError(
                "a widget key is public: it needs origins, the sites whose pages may use it"
                if self.role == "widget"
                else f'origins belong to a key with role = "widget", but this one is of a {self.role}'
            )
        return self


class KeysDocument(Table):
    """The whole file."""

    keys: list[KeyTable] = Field([], alias="key", description="written as [[key]]")


def read_keys(path: str, settings: Settings) -> list[KeyTable]:
    """The keys of the file. Raises `SettingsError` that lists what is wrong in it."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        hint = " docs-assistant key new NAME makes it." if isinstance(error, FileNotFoundError) else ""
        raise SettingsError(f"DOCS_KEYS={path} can't be read: {error.strerror}.{hint}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"DOCS_KEYS={path} can't be read: it isn't written in UTF-8.") from error
    return parse_keys(text, path, settings)


def parse_keys(text: str, path: str, settings: Settings) -> list[KeyTable]:
    """The same for the text of the file at this path."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} isn't valid TOML: {error}") from error
    try:
        keys = KeysDocument.model_validate(document).keys
    except ValidationError as error:
        messages = dict.fromkeys(_message(one, document) for one in error.errors())
        raise SettingsError("\n".join(f"{path}: {text}" for text in messages)) from None  # pydantic's text has hashes
    _check_doubled(path, keys)
    known = [assistant.id for assistant in read_assistants(settings).assistants]
    for key in keys:
        for name in (name for name in key.assistants if name not in known):
            hint = f"{did_you_mean(name, known)} Available: {', '.join(known)}."
            raise SettingsError(f"{path}: key {key.name!r}: there is no assistant {name!r}.{hint}")
    return keys


def is_over(last: date | None) -> bool:
    """Whether this last day is over, by the date in UTC, so that it doesn't depend on the machine. None never ends."""
    return last is not None and last < datetime.now(UTC).date()


def _check_doubled(path: str, keys: Collection[KeyTable]) -> None:
    for field in ("name", "hash"):
        seen = set[str]()
        for key in keys:
            if (value := getattr(key, field).lower()) in seen:
                raise SettingsError(f"{path}: key {key.name!r}: another key has the same {field}. Each needs its own.")
            seen.add(value)


def _message(error: ErrorDetails, document: Mapping[str, Any]) -> str:
    """The key and the field of the error, its value unless that is a hash, and what the value must be."""
    path = list(error["loc"])
    if len(path) < 2 or path[0] != "key":
        return f"the keys must be written as [[key]], and nothing else may be there: {path[0]}."
    number = int(path[1])
    table = document["key"][number]
    name = table.get("name") if isinstance(table, dict) else None
    where = f"key {name!r}: " if isinstance(name, str) and name else f"key {number + 1}: "
    if len(path) == 2:
        return f"{where}{error['ctx']['error'] if 'ctx' in error else 'it must be a table, written as [[key]]'}."
    return f"{where}{_field_message(error, str(path[2]), table)}"


def _field_message(error: ErrorDetails, field: str, table: Mapping[str, Any]) -> str:
    fields = KeyTable.model_fields
    if error["type"] == "extra_forbidden":
        return f"unknown {field}.{did_you_mean(field, fields)} Known: {', '.join(fields)}."
    if error["type"] == "missing":
        return f"{field} is missing. It must be {fields[field].description}."
    if error["type"] == "value_error":
        return f"{field}: {str(error['ctx']['error']).removesuffix('.')}."
    shown = "" if field == "hash" else f" = {json.dumps(table[field], ensure_ascii=False, default=str)[:100]}"
    near = did_you_mean(str(table[field]), ROLES) if field == "role" else ""
    return f"{field}{shown} must be {fields[field].description}.{near}"
