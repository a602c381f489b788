"""The files that prompts are made of: the shipped ones, and those in force with a directory of DOCS_PROMPTS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from app.core.errors import PromptError
from app.core.language import read_text

SUFFIXES = (".md", ".toml")


def shipped_languages() -> tuple[str, ...]:
    """The codes of the languages that have shipped prompts."""
    return tuple(
        sorted(folder.name for folder in files("prompts").iterdir() if folder.joinpath("language.toml").is_file())
    )


def shipped_files() -> dict[str, str]:
    """The text of each shipped file by its name, such as `en/synthesize.md` or `cs/persona/kids.md`."""
    root = files("prompts")
    return {
        f"{code}/{name}": root.joinpath(code, name).read_text(encoding="utf-8")
        for code in shipped_languages()
        for name in _names(root.joinpath(code))
    }


def own_files(folder: str) -> tuple[str, ...]:
    """The names of the files that a directory of DOCS_PROMPTS has. Raises `PromptError` if it doesn't exist."""
    if not Path(folder).is_dir():
        raise PromptError(f"{folder}: there is no such directory of prompts.")
    codes = sorted(path.name for path in Path(folder).iterdir() if path.is_dir() and not path.name.startswith("."))
    return tuple(f"{code}/{name}" for code in codes for name in _names(Path(folder, code)))


def files_in_force(folder: str) -> dict[str, str]:
    """The text of each file that is used with this directory of DOCS_PROMPTS (empty: the shipped ones alone)."""
    return {**shipped_files(), **{name: read_text(name, folder) for name in (own_files(folder) if folder else ())}}


def differing(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the files whose texts differ, spaces at the end of a file aside, because no prompt keeps them."""
    return tuple(name for name in sorted({*a, *b}) if a.get(name, "").rstrip() != b.get(name, "").rstrip())


def _names(folder: Traversable) -> Iterable[str]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(SUFFIXES):
            yield entry.name
        elif entry.name == "persona":
            yield from (f"persona/{one}" for one in _names(entry))
