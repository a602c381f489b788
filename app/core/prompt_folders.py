"""Checks that each file of the directory that DOCS_PROMPTS names is one that is used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from app.core.errors import PromptError
from app.core.nearest import did_you_mean
from app.core.prompt_files import shipped_languages

TABLES = ("language.toml", "dates.toml")
PERSONAS = "persona"
MISSPELT = 0.85
"""Similarity of a name to that of a shipped prompt from which on it is a misspelling, not a prompt of one's own step."""


def check_folder(
    folder: str, languages: Sequence[str], names: Collection[str], own: Collection[str] | None = None
) -> None:
    """Raise `PromptError` that lists the files and folders which nothing uses, with the nearest right names.

    `names` are those of the shipped prompts, `own` those of the steps of a project; None if these aren't known here.
    """
    root = Path(folder)
    if not root.is_dir():
        raise PromptError(f"DOCS_PROMPTS is {folder!r}, but there is no such directory.")
    known = [*languages, *shipped_languages()]
    wanted = {*(f"{name}.md" for name in names), *TABLES, PERSONAS}
    problems = list(_in_root(root, known, wanted))
    for code in dict.fromkeys(known):
        problems += _in_language(root / code, wanted, own) if (root / code).is_dir() else []
    if not problems and not any((root / code).is_dir() for code in known):
        problems = [
            f"DOCS_PROMPTS={folder} has no folder of a language. Put the files into {root / known[0]}, for example."
        ]
    if problems:
        raise PromptError("\n".join(problems))


def check_languages(languages: Sequence[str], folder: str) -> None:
    """Raise `PromptError` that names the languages without a folder of prompts."""
    shipped = shipped_languages()
    if lacking := [code for code in languages if code not in shipped and not (folder and Path(folder, code).is_dir())]:
        raise PromptError(
            f"DOCS_LANGUAGES has {', '.join(lacking)}, but there are no prompts for it: the package has {', '.join(shipped)}."
            " A new language needs a folder with the same files as prompts/en in the directory of DOCS_PROMPTS."
        )


def _in_root(root: Path, languages: Sequence[str], wanted: Collection[str]) -> Iterator[str]:
    for entry in _visible(root):
        if entry.is_dir() and entry.name not in languages:
            there = ", ".join(dict.fromkeys(languages))
            near = did_you_mean(entry.name, languages)
            yield f"{entry} is the folder of no language (there are {there}).{near} Set DOCS_LANGUAGES for a new one."
        elif entry.name in wanted:
            yield f"{entry} isn't used there: put it into the folder of its language, such as {root / languages[0]}."


def _in_language(folder: Path, wanted: Collection[str], own: Collection[str] | None) -> Iterator[str]:
    for entry in _visible(folder):
        if entry.name in wanted or (own is not None and entry.stem in own):
            continue
        if own is None and entry.suffix == ".md" and not get_close_matches(entry.name, wanted, cutoff=MISSPELT):
            continue  # perhaps a prompt of a project's step
        yield f"{entry} isn't used: there is no file of this name.{did_you_mean(entry.name, wanted)}"


def _visible(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
