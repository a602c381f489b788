"""Files of tables in TOML: reads one as a pydantic model, says in its own words what is wrong in it, and reads it again when it changes."""

import json
import logging
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from app.core.errors import ECHOED, SettingsError, did_you_mean

log = logging.getLogger("app.core")

Name = Annotated[str, Field(pattern=r"\S")]


class Table(BaseModel):
    """A table of the file. Error messages use the description of a key to say what it must be."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def written(self) -> Mapping[str, Any]:
        """The keys that the file sets, with their values."""
        return self.model_dump(by_alias=True, exclude_unset=True)


def read_file(setting: str, path: str, missing: str = "") -> str:
    """The text of the file that this setting names. Raises `SettingsError`; `missing` is the hint if it isn't there."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        hint = missing if isinstance(error, FileNotFoundError) else ""
        raise SettingsError(f"{setting}={path} can't be read: {error.strerror}.{hint}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{setting}={path} can't be read: it isn't written in UTF-8.") from error


Content = TypeVar("Content")


class WatchedFile(Generic[Content]):
    """The content of a file in use, which is read again when the file changes.

    A changed file that can't be read is logged once; the content that was read before stays. Raises `SettingsError` if the
    file can't be read at first.
    """

    def __init__(self, path: str, read: Callable[[], Content]) -> None:
        self._path, self._read = path, read
        self._signature = self._look()
        self._content = read()

    def current(self) -> Content:
        """The content of the file as it is now."""
        if (signature := self._look()) != self._signature:
            self._signature = signature
            try:
                self._content = self._read()
            except SettingsError as error:
                log.error("%s What was read before stays in use.", error)  # noqa: TRY400  # says enough
            else:
                log.info("read %s again", self._path)
        return self._content

    def _look(self) -> tuple[int, ...]:
        try:
            found = Path(self._path).stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino


AnyTable = TypeVar("AnyTable", bound=Table)


def parsed(kind: type[AnyTable], text: str, name: str) -> AnyTable:
    """The text of the TOML file of this name as this table. Raises `SettingsError` that lists what is wrong in it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{name} isn't valid TOML: {error}") from error
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        # pydantic reports a value that matches no branch of a union once for each branch
        messages = dict.fromkeys(_message(kind, details, document) for details in error.errors())
        text = "\n".join(f"{name}: {message}" for message in messages)
        raise SettingsError(text) from None  # pydantic's text has hashes of keys


def _message(table: type[Table], error: ErrorDetails, document: Mapping[str, Any]) -> str:
    """The table and key of the error, its value unless that is a secret, and what the value must be."""
    where, value, path = "", document, list(error["loc"])
    of_table = error["type"] == "value_error"
    while path and (inner := _inner(table, str(path[0]))):
        in_array = isinstance(value.get(str(path[0])), list)
        if len(path) <= in_array + (not of_table):
            break
        kind, *path = path
        value, table, number = value[str(kind)], inner, ""
        if in_array:
            value, number = value[int(path[0])], f" {int(path.pop(0)) + 1}"
        id_ = value.get("id") or value.get("name")
        where += f"{kind} {id_!r}: " if isinstance(id_, str) else f"{kind}{number}: "
    if not path:
        return f"{where}{error['ctx']['error']}."
    key = str(path[0])
    keys = {field.alias or name: field for name, field in table.model_fields.items()}
    if error["type"] == "extra_forbidden":
        return f"{where}unknown {key}.{did_you_mean(key, keys)} Known: {', '.join(keys)}."
    if error["type"] == "missing":
        return f"{where}{key} is missing. It must be {keys[key].description}."
    if of_table:
        return f"{where}{key}: {str(error['ctx']['error']).removesuffix('.')}."
    shown = f" = {_quoted(value[key])}" if keys[key].repr else ""
    values = [one for one in get_args(keys[key].annotation) if isinstance(one, str)]
    near = did_you_mean(str(value[key]), values)
    return f"{where}{key}{shown} must be {keys[key].description}.{near}"


def _inner(table: type[Table], key: str) -> type[Table] | None:
    """The table of this key, or those in its array; None if it has other values."""
    field = next((field for name, field in table.model_fields.items() if key == (field.alias or name)), None)
    items = get_args(field.annotation) if field else ()
    return items[0] if items and isinstance(items[0], type) and issubclass(items[0], Table) else None


def _quoted(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= ECHOED else text[:ECHOED] + "…"
