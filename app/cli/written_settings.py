"""Writes docs-assistant.toml and, for secrets, .env: other settings stay, and the old files are kept as .bak."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dotenv

from app.cli.settings_text import settings_text
from app.core.errors import SettingsError
from app.core.settings import FILE_KEYS, Settings
from app.core.settings_sources import FILE, IN_FILE, Origin

ENV = ".env"
PRIVATE = 0o600


def kept_in_file(settings: Settings, origins: Mapping[str, Origin]) -> dict[str, Any]:
    """What docs-assistant.toml has now, by field: values, and the paths of files with secrets."""
    values = {name: getattr(settings, name) for name, origin in origins.items() if origin.place == FILE}
    paths = {
        name + IN_FILE: origin.place for name, origin in origins.items() if origin.name == f"{FILE_KEYS[name]}{IN_FILE}"
    }
    return values | paths


def write_settings(values: Mapping[str, Any], secret: Mapping[str, str], kept: Mapping[str, Any]) -> None:
    """Write `values` and what is `kept`, by field, into docs-assistant.toml, and `secret` into .env, for its owner only.

    Raises `SettingsError` if that fails. Each file is replaced as a whole.
    """
    old = {name: value for name, value in kept.items() if name.removesuffix(IN_FILE) not in secret}
    try:
        with TemporaryDirectory(prefix=".docs-assistant-", dir=".") as folder:
            new = Path(folder)
            (new / FILE).write_text(settings_text(old | dict(values), secret), encoding="utf-8")
            _write_env(new / ENV, values, secret)
            for name in (ENV, FILE):
                if (new / name).exists():
                    _replace(new / name, Path(name))
    except OSError as error:
        raise SettingsError(f"{Path.cwd()} can't be written to: {error.strerror or error}.") from error


def overridden(*written: Mapping[str, Any]) -> list[str]:
    """The environment variables that override what was written."""
    names = (f"DOCS_{name.upper()}" for values in written for name in values)
    return [name for name in names if name in os.environ]


def _write_env(new: Path, values: Mapping[str, Any], secret: Mapping[str, str]) -> None:
    """Write the next .env, if it changes; what docs-assistant.toml says now must not be overridden by it."""
    old = dotenv.dotenv_values(ENV) if Path(ENV).exists() else {}
    other_places = [*values, *(name + IN_FILE for name in secret)]
    stale = [name for one in other_places if (name := f"DOCS_{one.upper()}") in old]
    if not secret and not stale:
        return
    new.touch(PRIVATE)
    if Path(ENV).exists():
        new.write_bytes(Path(ENV).read_bytes())
    for name in stale:
        dotenv.unset_key(new, name)
    for name, value in secret.items():
        dotenv.set_key(new, f"DOCS_{name.upper()}", value)


def _replace(new: Path, file: Path) -> None:
    """Replace the file, which stays as private as it was. `new` is in a directory that only its owner can open."""
    if file.exists():
        new.chmod(new.stat().st_mode & file.stat().st_mode)
        kept = new.with_name(f"{file.name}.bak")
        shutil.copyfile(file, kept)
        kept.chmod(PRIVATE)
        kept.replace(file.with_name(kept.name))
    new.replace(file)
