"""Prompts are files, loaded once. Their placeholders are checked at start-up, so that no invalid prompt is ever used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType

from app.core.errors import PromptError
from app.core.language import Language, Vocabulary, load_language, path_of, read_text, vocabulary
from app.core.nearest import did_you_mean
from app.core.prompt_folders import check_folder, check_languages

__all__ = ["Language", "Prompts", "load_prompts", "placeholders"]


@cache
def placeholders() -> Mapping[str, frozenset[str]]:
    """The placeholders of each prompt, by name; those of the shipped English file are what every language needs."""
    folder = files("prompts").joinpath("en")
    shipped = sorted((file for file in folder.iterdir() if file.name.endswith(".md")), key=lambda file: file.name)
    return MappingProxyType(
        {
            file.name.removesuffix(".md"): frozenset(Template(file.read_text(encoding="utf-8")).get_identifiers())
            for file in shipped
        }
    )


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
        self._placeholders = {name: frozenset(one.get_identifiers()) for (_, name), one in templates.items()}

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
        return {f"{code}/{name}.md": one.template for (code, name), one in self._templates.items()}

    def with_texts(self, texts: Mapping[str, str]) -> Prompts:
        """These prompts with other texts, by file as in `files`; a file of other prompts changes nothing.

        Raises `PromptError` if a text has other placeholders than the prompt.
        """
        changed = {
            (code, name): _checked(texts[file], file, self._placeholders[name])
            for code, name in self._templates
            if (file := f"{code}/{name}.md") in texts
        }
        return Prompts(self.languages, {**self._templates, **changed}, self.personas, self.vocabulary)

    def with_own(self, folder: Path, override: str = "") -> Prompts:
        """These prompts and those in `<folder>/<lang>/`, beside a step of a project; `override` as in `load_prompts`.

        A file with the name of a shipped prompt is no prompt of its own. Raises `PromptError` as `load_prompts` does.
        """
        files_ = sorted(path for code in self.languages for path in folder.joinpath(code).glob("*.md"))
        found: dict[tuple[str, str], Template] = {}
        for name in sorted({path.stem for path in files_} - placeholders().keys()):
            needed: frozenset[str] | None = None
            for code in self.languages:
                found[code, name] = template = _template(f"{code}/{name}.md", needed, override, str(folder))
                needed = frozenset(template.get_identifiers())
        return Prompts(self.languages, {**self._templates, **found}, self.personas, self.vocabulary)


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
    found = {}
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise PromptError(f"The persona file {name}.md needs a name of lower-case letters, digits and hyphens.")
        found[name] = {code: read_text(f"{code}/persona/{name}.md", override).strip() for code in languages}
    return found


def _template(name: str, needed: frozenset[str] | None, *folders: str) -> Template:
    return _checked(read_text(name, *folders), path_of(name, *folders), needed)


def _checked(text: str, path: object, needed: frozenset[str] | None) -> Template:
    template = Template(text)
    if not template.is_valid():
        raise PromptError(f"Prompt file {path} has a '$' that begins no placeholder: write '$$' for a dollar sign.")
    found = set(template.get_identifiers())
    if needed is not None and found != needed:
        wanted = ", ".join(f"${one}" for one in sorted(needed)) or "no placeholder"
        told = [f"${one} is unknown.{did_you_mean(one, needed)}" for one in sorted(found - needed)]
        told += [f"${one} is missing." for one in sorted(needed - found)]
        raise PromptError(f"Prompt file {path} must have exactly {wanted}. {' '.join(told)}")
    return template
