"""Translates pages into the languages of readers with the language model, checks the result, and caches it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from weakref import WeakValueDictionary

from app.core.errors import ModelError, SettingsError
from app.core.prompts import Prompts, load_prompts
from app.core.settings import Settings
from app.core.turn import Message
from app.core.types import Page
from app.models import Model, open_model
from app.models.protocols import CallOptions
from app.text.fences import blocks
from ingestion.convert.language import detect, prose
from ingestion.language_tags import primary_language
from ingestion.split.faithful import missing_parts
from ingestion.split.glossary import Glossary, load_glossary
from ingestion.split.kept_texts import keep, read_kept

PART = 2000
"""Characters given to the model at once: long texts tempt models to leave things out."""

PARALLEL = 4
TRIES = 2
SHOWN = 3
NO_TERMS = "–"
_H1 = re.compile(r"(?m)^#[ \t]++(\S.*)$")
_ANCHOR = re.compile(r"\{#[^{}]*\}$")


class NotFaithful(ModelError):
    """A translation lacks something of its original, so it can't be used."""


@dataclass
class Translator:
    """Translates pages into the languages of DOCS_TRANSLATE. Translations are cached in `folder`.

    A `dry` one uses those that are kept and makes no other.
    """

    settings: Settings
    model: Model
    prompts: Prompts
    glossary: Glossary
    folder: Path
    dry: bool = False
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARALLEL))
    _at_work: WeakValueDictionary[Path, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def wanted(self, page: Page) -> dict[str, str]:
        """By language, the name of each translation that the page should have; known without its Markdown."""
        foreign = page.language in self.settings.translate_from or (
            not self.settings.translate_from and page.language not in self.settings.languages
        )
        there = {page.language, *(primary_language(code) for code, url in page.alternates.items() if url != page.url)}
        key = hashlib.sha256(f"{page.hash}\x00{page.language}\x00{self.glossary.digest}".encode()).hexdigest()[:16]
        return {code: f"{code}:{key}" for code in self.settings.translate if foreign and code not in there}

    async def translate(self, page: Page, target: str) -> Page:
        """The page in the target language, still under its own address.

        Raises `NotFaithful` when the model leaves out what must be there, and other `ModelError`s when it fails.
        """
        file = self._file(page, target)
        async with self._at_work.setdefault(
            file, asyncio.Lock()
        ):  # copies of a page may be translated at the same time
            markdown = await asyncio.to_thread(read_kept, file)
            if not markdown and self.dry:
                raise ModelError("a dry run translates nothing")
            if not markdown:
                markdown = "".join([await self._part(part, page.language, target) for part in _parts(page.markdown)])
                self._check_language(markdown, page, target)
                await asyncio.to_thread(keep, file, markdown)
        return replace(
            page,
            markdown=markdown,
            language=target,
            translated_from=page.language,
            title=(_title(page.markdown) and _title(markdown)) or page.title,
        )

    async def close(self) -> None:
        """Close the model's connections."""
        await self.model.close()

    async def _part(self, part: tuple[bool, str], source: str, target: str) -> str:
        translatable, text = part
        inner = text.strip()
        if not translatable or not re.search(r"[^\W\d_]{2}", inner):
            return text
        terms, names = self.glossary.pairs(inner, source, target), self.glossary.names(inner)
        missing: list[str] = []
        for _ in range(TRIES):
            # on the second try, missing parts are given as terms to keep
            translated = await self._ask(inner, source, target, [*terms, *((word, word) for word in missing)])
            missing = missing_parts(inner, translated, names)
            if not missing:
                start = text.index(inner)
                return text[:start] + translated + text[start + len(inner) :]
        raise NotFaithful(f"the translation lacks {', '.join(missing[:SHOWN])}{' ...' if len(missing) > SHOWN else ''}")

    async def _ask(self, text: str, source: str, target: str, terms: list[tuple[str, str]]) -> str:
        listed = "\n".join(f"{term} = {wanted}" for term, wanted in terms) or NO_TERMS
        system = self.prompts.render(target, "translate", source=source, terms=listed)
        options = CallOptions(
            temperature=0,
            max_tokens=max(self.settings.llm_max_tokens, PART),
            timeout=self.settings.llm_timeout,
        )
        async with self._slots:
            answer = await self.model.complete([Message("system", system), Message("user", text)], options)
        if answer.finish_reason == "length":
            raise NotFaithful("the model broke off its translation")
        return _unwrapped(answer.text.strip())

    def _check_language(self, markdown: str, page: Page, target: str) -> None:
        found = detect(prose(markdown), {target, page.language, *self.settings.languages})
        if found and found != target:
            raise NotFaithful(f"the model wrote {found} instead of {target}")

    def _file(self, page: Page, target: str) -> Path:
        terms = self.glossary.pairs(page.markdown, page.language, target)
        key = hashlib.sha256(repr((page.markdown, page.language, terms)).encode()).hexdigest()[:24]
        return self.folder / target / f"{key}.md"


def open_translator(settings: Settings, *, dry: bool = False) -> Translator | None:
    """What translates, or None if DOCS_TRANSLATE is empty. Raises `SettingsError` when something is missing for it."""
    if not settings.translate:
        return None
    if unknown := [code for code in settings.translate if code not in settings.languages]:
        raise SettingsError(
            f"DOCS_TRANSLATE has {', '.join(unknown)}, which DOCS_LANGUAGES lacks: readers can't ask in it."
        )
    model = open_model(settings)
    if model is None:
        raise SettingsError(
            "DOCS_TRANSLATE needs a language model: set DOCS_LLM_URL and DOCS_LLM_MODEL, or leave it empty."
        )
    prompts = load_prompts(settings.languages, settings.prompts)
    return Translator(settings, model, prompts, load_glossary(settings.glossary), Path(settings.translations), dry)


def _title(markdown: str) -> str:
    """The text of the first h1 without its anchor; empty if there is none."""
    found = _H1.search(markdown)
    return _ANCHOR.sub("", found[1].rstrip(" \t")).rstrip(" \t") if found else ""


def _parts(markdown: str) -> Iterator[tuple[bool, str]]:
    """(translatable, text): fenced code as it is, prose in parts that end between blocks; they join back to the text."""
    for code, piece in blocks(markdown):
        if code:
            yield False, piece
            continue
        part = ""
        for block in re.split(r"(?<=\n\n)(?=\S)", piece):
            if part and len(part) + len(block) > PART:
                yield True, part
                part = ""
            part += block
        if part:
            yield True, part


def _unwrapped(answer: str) -> str:
    """The answer without a code fence around it. Parts that are sent contain no fences."""
    match = re.fullmatch(r"```(?:markdown|md)?[ \t]*\n(.*?)\n?```", answer, re.DOTALL)
    return match[1].strip("\n") if match else answer
