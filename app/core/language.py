"""Reads `prompts/<lang>/language.toml`: the words, patterns and texts of a language, and of all languages together."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from app.core.errors import PromptError, did_you_mean


def _pattern(text: str, info: ValidationInfo) -> str:
    try:
        if info.context:  # from the operator: `make check` tries those of this package
            re.compile(text)
    except re.error as error:
        raise ValueError(f"isn't a valid regular expression: {error}") from error
    return text


def _with_other(texts: Mapping[str, str]) -> Mapping[str, str]:
    if "other" not in texts:
        raise ValueError('needs a text by language code, and one for "other"')
    return texts


def _with_places(*names: str) -> AfterValidator:
    """Allows these placeholders, and no other braces."""

    def checked(text: str) -> str:
        if wrong := {name for _, name, *_ in Formatter().parse(text) if name is not None}.difference(names):
            raise ValueError(
                f"has the placeholder {{{min(wrong)}}}. Known are: {', '.join(f'{{{name}}}' for name in names)}"
            )
        return text

    return AfterValidator(checked)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for name in text.split(",") if (part := name.strip()))


def _folded(text: str) -> frozenset[str]:
    """The words as `app.text.analysis.fold` writes those of questions, which they are compared with."""
    decomposed = unicodedata.normalize("NFKD", str(text).casefold()).translate(STROKES)
    return frozenset("".join(c for c in decomposed if not unicodedata.combining(c)).split())


STROKES = str.maketrans("łđøħŧ", "ldoht")
"""Letters whose stroke Unicode doesn't take as a diacritic, although people leave it out when they type."""

Words = Annotated[frozenset[str], BeforeValidator(lambda text: frozenset(str(text).split()))]
FoldedWords = Annotated[frozenset[str], BeforeValidator(_folded)]
Letters = Annotated[frozenset[str], BeforeValidator(lambda text: frozenset(str(text)))]
Phrases = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Pattern = Annotated[str, BeforeValidator(str.strip), AfterValidator(_pattern)]
ByLanguage = Annotated[Mapping[str, str], AfterValidator(_with_other)]
Replacements = Annotated[
    Mapping[str, str], AfterValidator(lambda texts: {word.casefold(): other for word, other in texts.items()})
]


class Part(BaseModel):
    """Keys of a `language.toml` that have one use; docs/en/languages.md explains each. Those without a default are required."""

    model_config = ConfigDict(frozen=True, strict=True)


class Traits(Part):
    """What tells the language from others. `words` include the `stopwords`."""

    name: str
    words: FoldedWords
    stopwords: FoldedWords
    endings: FoldedWords
    letters: Letters = frozenset()
    nouns_capitalised: bool = False
    lends_words: bool = False
    characters_per_token: Annotated[float, Field(ge=0.2, le=10)] = 2.0
    also_called: Words = frozenset()
    close_to: Words = frozenset()


class Texts(Part):
    """What readers are shown."""

    sources: str
    extractive_intro: str
    extractive_failed: str
    related: str
    searching: str
    found: Annotated[str, _with_places("count")]
    still_reading: Annotated[str, _with_places("done", "total", "minutes")]
    translated: ByLanguage
    written: ByLanguage
    example_question: str = ""
    extractive_unsure: str = ""
    extractive_meanwhile: str = ""
    written_after: str = ""
    whole_section: str = ""
    unknown_words: Annotated[str, _with_places("words")] = ""
    reading: Annotated[str, _with_places("count")] = ""
    unproven: str = "(⚠)"
    refuted: str = "⚠"
    cut: str = "…"
    curated: str = ""
    sign_in: str = ""

    def translated_from(self, code: str) -> str:
        """The note that a source was translated from this language."""
        return self.translated.get(code, self.translated["other"]).replace("{code}", code)

    def written_in(self, code: str) -> str:
        """The note that a source is in this language, which is not the one of the question."""
        return self.written.get(code, self.written["other"]).replace("{code}", code)


class Questions(Part):
    """How people ask."""

    references: FoldedWords
    openers: FoldedWords
    smalltalk: FoldedWords
    question_words: FoldedWords = frozenset()
    asking: FoldedWords = frozenset()
    more: FoldedWords = frozenset()
    whole: FoldedWords = frozenset()
    covering: FoldedWords = frozenset()
    unsuggested: FoldedWords = frozenset()


class Replies(Part):
    """How models answer."""

    passage: Words = frozenset()
    source_headings: Phrases = ()
    no_answer: str = ""
    readers: Replacements = {}
    negations: Words = frozenset()
    placeholders: Words = frozenset()
    plain: Words = frozenset()


class Shared(Part):
    """What is looked for in every language, because models and pages also use others than the reader's."""

    abbreviations: Words = frozenset()
    and_or: Words = frozenset()
    secrets: Words = frozenset()
    at: Words = frozenset()
    dot: Words = frozenset()
    none: Pattern = ""
    labels: Pattern = ""
    up_to: Pattern = ""
    javascript: Pattern = ""
    updated: Pattern = ""
    published: Pattern = ""
    this_page: Pattern = ""
    encoding: str = ""
    units: Mapping[str, Pattern] = {}


PARTS: Mapping[str, type[Part]] = {
    "traits": Traits,
    "texts": Texts,
    "questions": Questions,
    "replies": Replies,
    "shared": Shared,
}
_FIELDS = {key: field for part in PARTS.values() for key, field in part.model_fields.items()}
REQUIRED = tuple(key for key, field in _FIELDS.items() if field.is_required())
OPTIONAL = tuple(key for key, field in _FIELDS.items() if not field.is_required())


@dataclass(frozen=True, slots=True)
class Language:
    """The content of a `language.toml`, by use; `dates` is its `dates.toml`."""

    code: str
    traits: Traits
    texts: Texts
    questions: Questions
    replies: Replies
    shared: Shared
    dates: Mapping[str, Any]


class Vocabulary(Shared):
    """The words of several languages together; a pattern matches those of any language.

    `function_words` are by language; `aliases` map other codes to the usual one.
    """

    codes: tuple[str, ...]
    function_words: Mapping[str, frozenset[str]]
    aliases: Mapping[str, str]
    close: tuple[frozenset[str], ...]


NOTHING = r"(?!)"
"""A pattern that matches nothing, for a key that no language has."""

USUAL_ENCODING = "windows-1252"  # what browsers assume if a page states none: https://encoding.spec.whatwg.org


def shipped_languages() -> tuple[str, ...]:
    """The codes of the languages that have shipped prompts."""
    folders = (folder for folder in files("prompts").iterdir() if folder.joinpath("language.toml").is_file())
    return tuple(sorted(folder.name for folder in folders))


@cache
def vocabulary(codes: tuple[str, ...] = (), override: str = "") -> Vocabulary:
    """The words of these languages and of all shipped ones. Raises `PromptError` for an invalid file."""
    languages = [load_language(code, override) for code in dict.fromkeys((*codes, *shipped_languages()))]
    traits = {language.code: language.traits for language in languages}
    encodings = [
        language.shared.encoding
        for language in languages
        if language.shared.encoding and (not codes or language.code in codes)
    ]
    united = {key: _united([getattr(language.shared, key) for language in languages]) for key in Shared.model_fields}
    return Vocabulary.model_construct(
        **united | {"encoding": next(iter(encodings), USUAL_ENCODING)},
        codes=tuple(dict.fromkeys(code for own in traits for code in (own, *sorted(traits[own].close_to)))),
        function_words={code: own.stopwords for code, own in traits.items()},
        aliases={alias: code for code, own in traits.items() for alias in own.also_called},
        close=tuple(frozenset({code, *own.close_to}) for code, own in traits.items() if own.close_to),
    )


def _united(values: Sequence[Any]) -> Any:
    """The words of all languages, or a pattern for any of theirs, also by unit."""
    if isinstance(values[0], frozenset):
        return frozenset().union(*values)
    if isinstance(values[0], Mapping):
        return {key: _united([value.get(key, "") for value in values]) for key in dict.fromkeys(chain(*values))}
    return "|".join(pattern for pattern in values if pattern) or NOTHING


@cache
def with_words(codes: tuple[str, ...], override: str = "") -> tuple[str, ...]:
    """Returns the languages that have a `language.toml`. Pages may be in others, questions may not."""
    return tuple(code for code in codes if has_file(f"{code}/language.toml", override))


M = TypeVar("M", bound=BaseModel)


def has_file(name: str, override: str) -> bool:
    """True if the operator's folder has the file, or the package."""
    return bool(_own(name, (override,))) or files("prompts").joinpath(name).is_file()


def validated(model: type[M], values: Mapping[str, Any], name: str, context: Any = None) -> M:
    """The values of a file as this model. Raises `PromptError`, which names the file and each wrong value."""
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, one['loc']))} {one['msg']}" for one in error.errors())
        raise PromptError("\n".join(f"{name}: {problem}." for problem in problems)) from error


def load_language(code: str, override: str = "") -> Language:
    """The language with this code. An optional key that the operator's file lacks has the shipped value.

    Raises `PromptError`, which names the file, if it is missing, or has an invalid or unknown key.
    """
    file = f"{code}/language.toml"
    name = path_of(file, override)
    own = _own(file, (override,)) is not None
    values = {**(_shipped_options(code) if own else {}), **read_toml(file, override)}
    _check_keys(values, name)
    values["words"] = f"{values['words']} {values['stopwords']}"
    parts: dict[str, Any] = {}
    for part, model in PARTS.items():
        given = {key: values[key] for key in model.model_fields if key in values}
        parts[part] = validated(model, given, name, own)
    return Language(code, dates=read_toml(f"{code}/dates.toml", override), **parts)


def _check_keys(values: Mapping[str, Any], name: str) -> None:
    problems = [
        f"{name} has the unknown key {key}.{did_you_mean(key, _FIELDS)}" for key in values if key not in _FIELDS
    ]
    if lacking := [key for key in REQUIRED if key not in values]:
        problems.append(f"{name} lacks {', '.join(lacking)}.")
    if problems:
        raise PromptError("\n".join(problems))


def _shipped_options(code: str) -> dict[str, Any]:
    shipped = files("prompts").joinpath(code, "language.toml")
    values = tomllib.loads(shipped.read_text(encoding="utf-8")) if shipped.is_file() else {}
    return {key: value for key, value in values.items() if key in OPTIONAL}


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
