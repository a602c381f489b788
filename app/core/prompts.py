"""Prompts as files: loaded once, their holes checked at start-up, so that a wrong one can't reach a reader."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

from app.core.errors import PromptError

HOLES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "refine_question": frozenset(),
        "refine_keywords": frozenset({"languages", "form"}),
        "synthesize": frozenset({"passages"}),
        "style": frozenset({"style"}),
        "attached": frozenset({"attached"}),
        "nothing_found": frozenset(),
        "smalltalk": frozenset(),
        "analyze": frozenset({"languages", "form"}),
        "answer_language": frozenset(),
        "translate": frozenset({"source", "terms"}),
        "period": frozenset({"today"}),
        "multi_query": frozenset({"count"}),
        "hyde": frozenset(),
        "associate": frozenset({"sections"}),
        "helpful": frozenset({"passages"}),
        "second_keywords": frozenset({"languages", "form", "tried"}),
        "condense": frozenset({"passages", "most"}),
        "clarify": frozenset({"choices"}),
        "persona": frozenset({"tone"}),
        "summarise": frozenset(),
    }
)


LISTS = ("words", "stopwords", "endings", "references", "openers", "smalltalk")
TEXTS = ("name", "sources", "extractive_intro", "related", "searching", "found", *LISTS)


@dataclass(frozen=True, slots=True)
class Language:
    """What `language.toml` says: the language's own name, words that tell it apart, texts readers see.

    All words are folded. `stopwords`, which are among `words`, say nothing of what a question is about; longer words
    with one of the `endings` are of this language too, although no list has them. `references`
    point to the question before, `openers` do so as a question's first word; `smalltalk` asks for nothing.
    `searching` and `found` are status lines. `translated` says by language, in this one, that something was translated
    from it, `written` that it is in it. `letters` are those besides a to z. `dates` is its `dates.toml`.
    `passage` is what a model may call a passage, `source_headings` what it may write above a list of sources of its
    own, `no_answer` a pattern of folded sentences that say that the documentation has no answer.
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
    related: str
    searching: str
    found: str
    translated: Mapping[str, str]
    written: Mapping[str, str]
    dates: Mapping[str, Any]
    letters: frozenset[str] = frozenset()
    passage: frozenset[str] = frozenset()
    source_headings: tuple[str, ...] = ()
    no_answer: str = ""

    def translated_from(self, code: str) -> str:
        """How readers are told that a source was translated from this language."""
        return self.translated.get(code, self.translated["other"]).replace("{code}", code)

    def written_in(self, code: str) -> str:
        """How readers are told that a source is in this language, which isn't theirs."""
        return self.written.get(code, self.written["other"]).replace("{code}", code)


class Prompts:
    """The prompts and texts of the configured languages."""

    def __init__(
        self,
        languages: Mapping[str, Language],
        templates: Mapping[tuple[str, str], Template],
        personas: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.languages = languages
        self.personas = personas  # by name, their tones by language
        self._templates = templates

    def persona(self, language: str, name: str) -> str:
        """What is added to the prompt of an answer in this tone; nothing for an empty name."""
        return self.render(language, "persona", tone=self.personas[name][language]) if name else ""

    def language(self, code: str) -> Language:
        """The language's texts; `PromptError` when it isn't configured."""
        try:
            return self.languages[code]
        except KeyError as error:
            raise PromptError(
                f"No prompts for language {code!r}: configured are {', '.join(self.languages)} (DOCS_LANGUAGES)."
            ) from error

    def render(self, language: str, name: str, **holes: str) -> str:
        """The prompt with its holes filled; `PromptError` when a hole stays open or has no place."""
        self.language(language)
        if set(holes) != HOLES[name]:
            raise PromptError(f"Prompt {name} has the holes {sorted(HOLES[name])}, given were {sorted(holes)}.")
        return self._templates[language, name].substitute(holes).strip()


def load_prompts(languages: Sequence[str], override: str = "") -> Prompts:
    """All prompts of these languages; a file `<lang>/<name>.md` under `override` replaces the shipped one.

    Raises `PromptError` naming the file where one is missing, has a wrong hole, or can't be read.
    """
    if not languages:
        raise PromptError("No language is configured: set DOCS_LANGUAGES, for example to 'cs en'.")
    if override and not Path(override).is_dir():
        raise PromptError(f"DOCS_PROMPTS is {override!r}, which is no directory.")
    templates = {
        (code, name): _template(f"{code}/{name}.md", holes, override)
        for code in languages
        for name, holes in HOLES.items()
    }
    return Prompts({code: _language(code, override) for code in languages}, templates, _personas(languages, override))


def _personas(languages: Sequence[str], override: str) -> Mapping[str, Mapping[str, str]]:
    """The tones of every persona that any language has; `PromptError` where another language lacks it."""
    folders = [folder for code in languages if (folder := files("prompts").joinpath(code, "persona")).is_dir()]
    shipped = [entry.name for folder in folders for entry in folder.iterdir()]
    own = [file.name for code in languages if override for file in Path(override, code, "persona").glob("*.md")]
    names = sorted({name.removesuffix(".md") for name in [*shipped, *own] if name.endswith(".md")})
    found = {}
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise PromptError(f"The persona file {name}.md needs a name of small letters, digits and hyphens.")
        found[name] = {code: _read(f"{code}/persona/{name}.md", override).strip() for code in languages}
    return found


def _read(name: str, override: str) -> str:
    own = Path(override, name) if override else None
    try:
        if own and own.is_file():
            return own.read_text(encoding="utf-8")
        return files("prompts").joinpath(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(
            f"Prompt file prompts/{name} can't be read ({error}). A language needs a folder with the same files as prompts/en."
        ) from error


def _template(name: str, holes: frozenset[str], override: str) -> Template:
    template = Template(_read(name, override))
    if not template.is_valid():
        raise PromptError(f"Prompt file prompts/{name} has a stray '$': write '$$' for the sign itself.")
    found = set(template.get_identifiers())
    if found != holes:
        raise PromptError(
            f"Prompt file prompts/{name} has the holes {sorted(found)}, it needs exactly {sorted(holes)}."
        )
    return template


def _toml(name: str, override: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(name, override))
    except tomllib.TOMLDecodeError as error:
        raise PromptError(f"prompts/{name} is no valid TOML: {error}") from error


def _table(values: dict[str, Any], key: str, name: str) -> Mapping[str, str]:
    table = values.pop(key)
    if not isinstance(table, dict) or not isinstance(table.get("other"), str):
        raise PromptError(f'prompts/{name} needs a table [{key}] with a text by language code, and one for "other".')
    return {str(code): str(text) for code, text in table.items()}


def _pattern(text: str, name: str) -> str:
    pattern = f"(?x){text}" if text.strip() else ""  # lines and blanks in the file are for its readers
    try:
        re.compile(pattern)
    except re.error as error:
        raise PromptError(f"prompts/{name}: no_answer is no regular expression: {error}.") from error
    return pattern


def _language(code: str, override: str) -> Language:
    name = f"{code}/language.toml"
    values = _toml(name, override)
    try:
        texts = {key: str(values.pop(key)) for key in TEXTS}
        letters = frozenset(str(values.pop("letters", "")))
        passage = frozenset(str(values.pop("passage", "")).split())
        source_headings = tuple(
            heading.strip() for heading in str(values.pop("source_headings", "")).split(",") if heading.strip()
        )
        no_answer = _pattern(str(values.pop("no_answer", "")), name)
        translated, written = _table(values, "translated", name), _table(values, "written", name)
    except KeyError as error:
        raise PromptError(f"prompts/{name} lacks {error}.") from error
    if values:
        raise PromptError(f"prompts/{name} has unknown keys: {', '.join(sorted(values))}.")
    words = {key: frozenset(texts.pop(key).split()) for key in LISTS}
    return Language(
        code=code,
        name=texts["name"],
        sources=texts["sources"],
        related=texts["related"],
        searching=texts["searching"],
        found=texts["found"],
        translated=translated,
        written=written,
        letters=letters,
        passage=passage,
        source_headings=source_headings,
        no_answer=no_answer,
        extractive_intro=texts["extractive_intro"],
        words=words["words"] | words["stopwords"],
        stopwords=words["stopwords"],
        endings=words["endings"],
        references=words["references"],
        openers=words["openers"],
        smalltalk=words["smalltalk"],
        dates=_toml(f"{code}/dates.toml", override),
    )
