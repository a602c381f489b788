"""Reads docs-assistant.toml: the settings in tables, under the names that the documentation shows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic_settings import InitSettingsSource

from app.core.errors import SettingsError

FILE = "docs-assistant.toml"


class FileSource(InitSettingsSource):
    """The settings of the file for pydantic-settings, after those of all earlier sources."""

    def __call__(self) -> dict[str, Any]:
        """The settings that no earlier source has. Otherwise, pydantic-settings would merge dictionaries."""
        return {name: value for name, value in super().__call__().items() if name not in self.current_state}


def read_settings_file(path: Path, keys: Mapping[str, str]) -> dict[str, Any]:
    """The settings in the file, by field; none if there is no file. `keys` has the key of each field, such as `llm.url`.

    Raises `SettingsError` if the file can't be read, or for a key that doesn't exist.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} can't be read: {error}") from error
    fields = {key: name for name, key in keys.items()}
    written = _by_key(content)
    if unknown := [key for key in written if key not in fields]:
        raise SettingsError("\n".join(f"{path}: {_unknown(key, keys)}" for key in unknown))
    return {fields[key]: value for key, value in written.items()}


def _by_key(content: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in content.items():
        found |= {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _unknown(key: str, keys: Mapping[str, str]) -> str:
    """The error for an unknown key, with the setting of the most similar name."""
    short = {name.partition(".")[2]: name for name in keys.values()}
    spellings = {**short, **keys, **{name: name for name in keys.values()}}
    wanted = key.lower().removeprefix("docs_")
    last = wanted.rpartition(".")[2]
    near = [last] if last in short else get_close_matches(wanted, spellings) or get_close_matches(last, spellings)
    if near:
        return f"there is no setting {key}. Did you mean {spellings[near[0]]}?"
    tables = dict.fromkeys(name.partition(".")[0] for name in keys.values())
    return f"there is no setting {key}. The tables are {', '.join(tables)}."
