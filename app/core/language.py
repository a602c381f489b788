"""Reads `prompts/<lang>/language.toml`: the words, patterns and texts of a language, and of all languages together."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.core.errors import PromptError, did_you_mean

LISTS = ("words", "stopwords", "endings", "references", "openers", "smalltalk")
TEXTS = ("name", "sources", "extractive_intro", "extractive_failed", "related", "searching", "found")
FLAGS = ("nouns_capitalised", "lends_words")
OPTIONAL_TEXTS = ("example_question", "encoding")
OPTIONAL_LISTS = (
    "question_words", "whole", "covering", "passage", "abbreviations", "and_or", "also_called", "close_to", "contrast", "only",
    "secrets", "at", "dot",
)  # fmt: skip
PATTERNS = ("no_answer", "none", "labels", "up_to", "javascript", "updated", "published", "this_page")
TABLES = ("translated", "written")
OPTIONAL = (*FLAGS, *OPTIONAL_TEXTS, *OPTIONAL_LISTS, *PATTERNS, "letters", "source_headings", "units", "readers")


@dataclass(frozen=True, slots=True)
class Language:
    """The content of a `language.toml`: name, words, patterns, and texts for readers.

    docs/en/languages.md explains each key. `words` include the `stopwords`; `dates` is its `dates.toml`.
    """

    code: str
    name: str
    words: frozenset[str]
    stopwords: frozenset[str]
    endings: frozenset[str]
    references: frozenset[str]
    openers: frozenset[str]
    smalltalk: frozenset[str]
    sources: str
    extractive_intro: str
    extractive_failed: str
    related: str
    searching: str
    found: str
    translated: Mapping[str, str]
    written: Mapping[str, str]
    dates: Mapping[str, Any]
    letters: frozenset[str] = frozenset()
    question_words: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    covering: frozenset[str] = frozenset()
    passage: frozenset[str] = frozenset()
    source_headings: tuple[str, ...] = ()
    no_answer: str = ""
    contrast: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    nouns_capitalised: bool = False
    lends_words: bool = False
    example_question: str = ""
    encoding: str = ""
    abbreviations: frozenset[str] = frozenset()
    and_or: frozenset[str] = frozenset()
    also_called: frozenset[str] = frozenset()
    close_to: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    at: frozenset[str] = frozenset()
    dot: frozenset[str] = frozenset()
    none: str = ""
    labels: str = ""
    up_to: str = ""
    javascript: str = ""
    updated: str = ""
    published: str = ""
    this_page: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, str] = field(default_factory=dict)

    def translated_from(self, code: str) -> str:
        """The note for readers that a source was translated from this language."""
        return self.translated.get(code, self.translated["other"]).replace("{code}", code)

    def written_in(self, code: str) -> str:
        """The note for readers that a source is in this language, which is not the one of the question."""
        return self.written.get(code, self.written["other"]).replace("{code}", code)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of several languages together, because models and pages also use other languages than the reader's.

    A pattern matches the words of any language. `function_words` are by language; `aliases` map other codes to the usual one.
    """

    codes: tuple[str, ...]
    function_words: Mapping[str, frozenset[str]]
    aliases: Mapping[str, str]
    close: tuple[frozenset[str], ...]
    abbreviations: frozenset[str]
    and_or: frozenset[str]
    secrets: frozenset[str]
    at: frozenset[str]
    dot: frozenset[str]
    encoding: str
    none: str
    labels: str
    up_to: str
    javascript: str
    updated: str
    published: str
    this_page: str
    units: Mapping[str, str]


NOTHING = r"(?!)"
"""A pattern that matches nothing, for a key that no language has."""

USUAL_ENCODING = "windows-1252"  # what browsers assume if a page states none: https://encoding.spec.whatwg.org


@cache
def vocabulary(codes: tuple[str, ...] = (), override: str = "") -> Vocabulary:
    """The words of these languages and of all shipped ones. Raises `PromptError` for an invalid file."""
    shipped = sorted(folder.name for folder in files("prompts").iterdir() if folder.joinpath("language.toml").is_file())
    languages = [load_language(code, override) for code in dict.fromkeys((*codes, *shipped))]
    encodings = [
        language.encoding for language in languages if language.encoding and (not codes or language.code in codes)
    ]
    units = dict.fromkeys(unit for language in languages for unit in language.units)
    return Vocabulary(
        codes=tuple(
            dict.fromkeys(code for language in languages for code in (language.code, *sorted(language.close_to)))
        ),
        function_words={language.code: language.stopwords for language in languages},
        aliases={alias: language.code for language in languages for alias in language.also_called},
        close=tuple(frozenset({language.code, *language.close_to}) for language in languages if language.close_to),
        abbreviations=frozenset().union(*(language.abbreviations for language in languages)),
        and_or=frozenset().union(*(language.and_or for language in languages)),
        secrets=frozenset().union(*(language.secrets for language in languages)),
        at=frozenset().union(*(language.at for language in languages)),
        dot=frozenset().union(*(language.dot for language in languages)),
        encoding=next(iter(encodings), USUAL_ENCODING),
        none=_any(language.none for language in languages),
        labels=_any(language.labels for language in languages),
        up_to=_any(language.up_to for language in languages),
        javascript=_any(language.javascript for language in languages),
        updated=_any(language.updated for language in languages),
        published=_any(language.published for language in languages),
        this_page=_any(language.this_page for language in languages),
        units={unit: _any(language.units.get(unit, "") for language in languages) for unit in units},
    )


@cache
def with_words(codes: tuple[str, ...], override: str = "") -> tuple[str, ...]:
    """Returns the languages that have a `language.toml`. Pages may be in others, questions may not."""
    return tuple(
        code
        for code in codes
        if _own(f"{code}/language.toml", (override,)) or files("prompts").joinpath(code, "language.toml").is_file()
    )


def _any(patterns: Iterable[str]) -> str:
    return "|".join(pattern for pattern in patterns if pattern) or NOTHING


def load_language(code: str, override: str = "") -> Language:
    """The language with this code. An optional key that the operator's file lacks has the shipped value.

    Raises `PromptError`, which names the file, if it is missing, or has an invalid or unknown key.
    """
    file = f"{code}/language.toml"
    name = path_of(file, override)
    values = {**_shipped_options(code), **read_toml(file, override)}
    _check_keys(values, name)
    texts: dict[str, Any] = {key: str(values.pop(key)) for key in TEXTS}
    words: dict[str, Any] = {key: frozenset(str(values.pop(key)).split()) for key in LISTS}
    tables: dict[str, Any] = {key: _table(values, key, name) for key in TABLES}
    words["words"] |= words["stopwords"]
    headings = [heading.strip() for heading in str(values.pop("source_headings", "")).split(",")]
    units, readers = values.pop("units", {}), values.pop("readers", {})
    if not (isinstance(units, dict) and isinstance(readers, dict)):
        raise PromptError(f"{name} needs tables [units], with a pattern by unit, and [readers], with a word by word.")
    options: dict[str, Any] = {
        **{key: values.pop(key, False) is True for key in FLAGS},
        **{key: str(values.pop(key, "")) for key in OPTIONAL_TEXTS},
        **{key: frozenset(str(values.pop(key, "")).split()) for key in OPTIONAL_LISTS},
        **{key: _pattern(key, str(values.pop(key, "")), name) for key in PATTERNS},
        "letters": frozenset(str(values.pop("letters", ""))),
        "source_headings": tuple(heading for heading in headings if heading),
        "readers": {str(word).casefold(): str(other) for word, other in readers.items()},
        "units": {str(unit): _pattern(f"units.{unit}", str(text), name) for unit, text in units.items()},
    }
    return Language(code=code, **texts, **words, **tables, **options, dates=read_toml(f"{code}/dates.toml", override))


def _check_keys(values: Mapping[str, Any], name: str) -> None:
    required = (*TEXTS, *LISTS, *TABLES)
    known = (*required, *OPTIONAL)
    problems = [f"{name} has the unknown key {key}.{did_you_mean(key, known)}" for key in values if key not in known]
    if lacking := [key for key in required if key not in values]:
        problems.append(f"{name} lacks {', '.join(lacking)}.")
    if problems:
        raise PromptError("\n".join(problems))


def _shipped_options(code: str) -> dict[str, Any]:
    shipped = files("prompts").joinpath(code, "language.toml")
    values = tomllib.loads(shipped.read_text(encoding="utf-8")) if shipped.is_file() else {}
    return {key: value for key, value in values.items() if key in OPTIONAL}


def _table(values: dict[str, Any], key: str, name: str) -> Mapping[str, str]:
    table = values.pop(key)
    if not isinstance(table, dict) or not isinstance(table.get("other"), str):
        raise PromptError(f'{name} needs a table [{key}] with a text by language code, and one for "other".')
    return {str(code): str(text) for code, text in table.items()}


def _pattern(key: str, text: str, name: str) -> str:
    # in a long pattern, line breaks and spaces are only for its readers
    pattern = f"(?x){text}" if key == "no_answer" and text.strip() else text.strip()
    try:
        re.compile(pattern)
    except re.error as error:
        raise PromptError(f"{name}: {key} isn't a valid regular expression: {error}.") from error
    return pattern


def read_toml(name: str, override: str) -> dict[str, Any]:
    """The values of a TOML file in `prompts`. Raises `PromptError` if it can't be read."""
    try:
        return tomllib.loads(read_text(name, override))
    except tomllib.TOMLDecodeError as error:
        raise PromptError(f"{path_of(name, override)} isn't valid TOML: {error}") from error


def path_of(name: str, *folders: str) -> str:
    """The path of a file as errors name it: in the first of the folders that has it, or else in `prompts`."""
    return str(_own(name, folders) or Path("prompts", name))


def read_text(name: str, *folders: str) -> str:
    """The text of a file in the first of the folders that has it, or else in `prompts`. Raises `PromptError` if it can't
    be read.
    """
    try:
        if own := _own(name, folders):
            return own.read_text(encoding="utf-8-sig")
        return files("prompts").joinpath(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(
            f"Prompt file {path_of(name, *folders)} can't be read ({error})."
            " A language needs a folder with the same files as prompts/en."
        ) from error


def _own(name: str, folders: Iterable[str]) -> Path | None:
    return next((path for folder in folders if folder and (path := Path(folder, name)).is_file()), None)
