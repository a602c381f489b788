"""Files with texts that a language model wrote (DOCS_TRANSLATIONS), so that each is written only once."""

from __future__ import annotations

from pathlib import Path

from app.core.errors import SettingsError


def read_kept(file: Path) -> str:
    """The text; empty if there is none. Raises `SettingsError` for a file that can't be read."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"DOCS_TRANSLATIONS: {file} can't be read: {error}") from error


def keep(file: Path, text: str) -> None:
    """Write the text. Raises `SettingsError` for a file that can't be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        raise SettingsError(f"DOCS_TRANSLATIONS: {file} can't be written: {error}") from error
