"""Prompts are files, loaded once. Their placeholders are checked at start-up, so that no invalid prompt is ever used.

The files are the shipped ones, and those of the directory of DOCS_PROMPTS.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from app.core.errors import PromptError, did_you_mean
from app.core.language import Language, Vocabulary, load_language, path_of, read_text, shipped_languages, vocabulary

SUFFIXES = (".md", ".toml")


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
            yield from (f"persona/{name}" for name in _names(entry))


TABLES = ("language.toml", "dates.toml", "exam.toml", "briefing.toml", "figures.toml")
PERSONAS = "persona"
SYNONYMS = "synonyms.toml"
"""The file of all languages in the directory of DOCS_PROMPTS, which `app.text.synonyms` reads."""
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
    if not problems and not any((root / own).exists() for own in (*known, SYNONYMS)):
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


@cache
def placeholders() -> Mapping[str, frozenset[str]]:
    """The placeholders of each prompt, by name; those of the shipped English file are what every language needs."""
    folder = files("prompts").joinpath("en")
    shipped = sorted((file for file in folder.iterdir() if file.name.endswith(".md")), key=lambda file: file.name)
    return {
        file.name.removesuffix(".md"): frozenset(Template(file.read_text(encoding="utf-8")).get_identifiers())
        for file in shipped
    }


class Prompts:
    """The prompts and texts of the configured languages."""

    def __init__(
        self,
        languages: Mapping[str, Language],
        templates: Mapping[tuple[str, str], Template],
        personas: Mapping[str, Mapping[str, str]],
        vocabulary: Vocabulary,
    ) -> None:
        self.languages = languages
        self.vocabulary = vocabulary  # of these and all other shipped languages
        self.personas = personas  # tones by name and language
        self._templates = templates
        self._placeholders = {name: frozenset(template.get_identifiers()) for (_, name), template in templates.items()}

    def persona(self, language: str, name: str) -> str:
        """The addition to the prompt for an answer in this tone; empty for an empty name."""
        return self.render(language, "persona", tone=self.personas[name][language]) if name else ""

    def language(self, code: str) -> Language:
        """The texts of a language. Raises `PromptError` if it isn't configured."""
        try:
            return self.languages[code]
        except KeyError as error:
            raise PromptError(
                f"No prompts for language {code!r}: configured are {', '.join(self.languages)} (DOCS_LANGUAGES)."
            ) from error

    def render(self, language: str, name: str, **values: str) -> str:
        """The prompt with these values. Raises `PromptError` if they don't match its placeholders."""
        self.language(language)
        if name not in self._placeholders:
            raise PromptError(f"There is no prompt {name!r}: write prompts/{language}/{name}.md beside the step.")
        if set(values) != self._placeholders[name]:
            raise PromptError(
                f"Prompt {name} has the placeholders {sorted(self._placeholders[name])}, but the values are for {sorted(values)}."
            )
        return self._templates[language, name].substitute(values).strip()

    @property
    def files(self) -> Mapping[str, str]:
        """The text of each prompt by its file, such as `en/synthesize.md`; without tables and personas."""
        return {f"{code}/{name}.md": template.template for (code, name), template in self._templates.items()}

    def with_texts(self, texts: Mapping[str, str]) -> Prompts:
        """Returns the prompts with other texts, by file as in `files`; a file of other prompts changes nothing.

        Raises `PromptError` if a text has other placeholders than the prompt.
        """
        changed = {
            (code, name): _checked(texts[file], file, self._placeholders[name])
            for code, name in self._templates
            if (file := f"{code}/{name}.md") in texts
        }
        return Prompts(self.languages, {**self._templates, **changed}, self.personas, self.vocabulary)

    def with_own(self, folder: Path, override: str = "") -> Prompts:
        """Returns these prompts and those in `<folder>/<lang>/`, beside a step of a project; `override` as in `load_prompts`.

        A file with the name of a shipped prompt is no prompt of its own. Raises `PromptError` as `load_prompts` does.
        """
        files_ = sorted(path for code in self.languages for path in folder.joinpath(code).glob("*.md"))
        templates: dict[tuple[str, str], Template] = {}
        for name in sorted({path.stem for path in files_} - placeholders().keys()):
            needed: frozenset[str] | None = None
            for code in self.languages:
                templates[code, name] = template = _template(f"{code}/{name}.md", needed, override, str(folder))
                needed = frozenset(template.get_identifiers())
        return Prompts(self.languages, {**self._templates, **templates}, self.personas, self.vocabulary)


def load_prompts(languages: Sequence[str], override: str = "") -> Prompts:
    """All prompts of these languages; a file `<lang>/<name>.md` under `override` replaces the shipped one.

    Raises `PromptError`, which names the file, if one is missing, has a wrong placeholder, or can't be read.
    """
    if not languages:
        raise PromptError("No language is configured: set DOCS_LANGUAGES, for example to 'cs en'.")
    if override:
        check_folder(override, languages, placeholders())
    check_languages(languages, override)
    templates = {
        (code, name): _template(f"{code}/{name}.md", needed, override)
        for code in languages
        for name, needed in placeholders().items()
    }
    return Prompts(
        {code: load_language(code, override) for code in languages},
        templates,
        _personas(languages, override),
        vocabulary(tuple(languages), override),
    )


def _personas(languages: Sequence[str], override: str) -> Mapping[str, Mapping[str, str]]:
    """The tones of all personas by language. Raises `PromptError` if a language lacks a persona that another has."""
    folders = [folder for code in languages if (folder := files("prompts").joinpath(code, "persona")).is_dir()]
    shipped = [entry.name for folder in folders for entry in folder.iterdir()]
    own = [file.name for code in languages if override for file in Path(override, code, "persona").glob("*.md")]
    names = sorted({name.removesuffix(".md") for name in [*shipped, *own] if name.endswith(".md")})
    personas = {}
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise PromptError(f"The persona file {name}.md needs a name of lower-case letters, digits and hyphens.")
        personas[name] = {code: read_text(f"{code}/persona/{name}.md", override).strip() for code in languages}
    return personas


def _template(name: str, needed: frozenset[str] | None, *folders: str) -> Template:
    return _checked(read_text(name, *folders), path_of(name, *folders), needed)


def _checked(text: str, path: object, needed: frozenset[str] | None) -> Template:
    template = Template(text)
    if not template.is_valid():
        raise PromptError(f"Prompt file {path} has a '$' that begins no placeholder: write '$$' for a dollar sign.")
    placeholders_there = set(template.get_identifiers())
    if needed is not None and placeholders_there != needed:
        wanted = ", ".join(f"${name}" for name in sorted(needed)) or "no placeholder"
        told = [f"${name} is unknown.{did_you_mean(name, needed)}" for name in sorted(placeholders_there - needed)]
        told += [f"${name} is missing." for name in sorted(needed - placeholders_there)]
        raise PromptError(f"Prompt file {path} must have exactly {wanted}. {' '.join(told)}")
    return template
