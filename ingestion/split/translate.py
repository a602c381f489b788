"""Translates pages into the languages of readers with the language model: with a glossary of terms, checked, and kept."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from app.core.errors import ModelError, SettingsError
from app.core.settings import Settings
from app.core.types import Page
from app.text.blocks import blocks
from app.text.literals import code_spans, without_code
from ingestion.convert.language import detect, prose
from ingestion.convert.markdown.structure import headings_in
from ingestion.crawl.language_tags import primary_language
from ingestion.split.written import BrokenOff, KeptTexts, PageWriter, open_page_writer

SAME = "*"
"""The column of terms that are the same in every language: names that must not be translated."""

_ENDING = 2
_INFLECTED = 5

Term = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Glossary:
    """Terms by language; the empty one fixes nothing."""

    terms: tuple[Term, ...] = ()

    @property
    def digest(self) -> str:
        """Another one means that translations made with it may differ."""
        rows = sorted("\x00".join(f"{code}={word}" for code, word in sorted(term.items())) for term in self.terms)
        return hashlib.sha256("\x01".join(rows).encode()).hexdigest()[:16]

    def pairs(self, text: str, source: str, target: str) -> list[tuple[str, str]]:
        """(term, its translation) of the terms that the text has, in any of their inflected forms."""
        terms: list[tuple[str, str]] = []
        for term in self.terms:
            written, wanted = term.get(SAME) or term.get(source), term.get(SAME) or term.get(target)
            if written and wanted and _pattern(written).search(text):
                terms.append((written, wanted))
        return terms

    def names(self, text: str) -> list[str]:
        """The terms in the text that every language writes alike."""
        return [term[SAME] for term in self.terms if term.get(SAME) and term[SAME] in text]


def load_glossary(path: str) -> Glossary:
    """The glossary in the file; an empty one without a path. Raises `SettingsError` for an invalid file."""
    if not path:
        return Glossary()
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        rows = _from_toml(text) if path.endswith(".toml") else _from_csv(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, csv.Error) as error:
        raise SettingsError(f"DOCS_GLOSSARY={path} can't be read: {error}") from error
    terms: list[Term] = []
    for row in rows:
        term = {code.strip(): word.strip() for code, word in row.items() if word.strip()}
        if any(not re.fullmatch(r"[a-z]{2,3}|\*", code) for code in term):
            raise SettingsError(
                f"DOCS_GLOSSARY={path}: {sorted(row)} are not all language codes such as cs, or * for what stays as it is."
            )
        if len(term) > 1 or SAME in term:
            terms.append(term)
    return Glossary(tuple(terms))


def _from_csv(text: str) -> list[dict[str, str]]:
    dialect = ";" if ";" in text.partition("\n")[0] else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=dialect, restkey="too many columns", strict=True)
    return [{str(code): str(word or "") for code, word in row.items()} for row in reader]


def _from_toml(text: str) -> list[dict[str, str]]:
    rows = tomllib.loads(text).get("term")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise tomllib.TOMLDecodeError("it needs tables [[term]], each with a term by language code")
    return [{str(code): str(word) for code, word in row.items()} for row in rows]


def _pattern(term: str) -> re.Pattern[str]:
    """The term with other endings too: úložisko, úložiska."""
    words = [re.escape(word[:-_ENDING] if len(word) > _INFLECTED else word) for word in term.split()]
    return re.compile(r"(?<!\w)" + r"\w*\s+".join(words) + r"\w*", re.IGNORECASE)


_ADDRESS = re.compile(r"(?<=\]\()\s*<?([^\s)>]+)|(https?://[^\s<>)\]]+)")
_ID = re.compile(r"\{#[^{}\s]+\}|\[#[^\[\]\s]+\]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_HEADING = re.compile(r"(?m)^(#{1,6})[ \t]+\S")
_ROW = re.compile(r"(?m)^[ \t]*\|.*\|[ \t]*$")


def missing_parts(original: str, translation: str, names: Sequence[str] = ()) -> list[str]:
    """Returns what the translation lacks, as written in the original; empty when it is complete.

    `names` are terms that must not be translated. Both texts are prose: fenced code isn't translated at all.
    """
    missing = list((Counter(_invariants(original)) - Counter(_invariants(translation))).elements())
    missing += [name for name in names if name not in translation]
    if _HEADING.findall(original) != _HEADING.findall(translation):
        missing.append("headings")
    if _cells(original) != _cells(translation):
        missing.append("cells of a table")
    return list(dict.fromkeys(missing))


def _invariants(text: str) -> list[str]:
    rest = without_code(text)
    ids = _ID.findall(rest)
    rest = _ID.sub(" ", rest)
    addresses = [(match[1] or match[2]).rstrip(".,;") for match in _ADDRESS.finditer(rest)]
    return [*code_spans(text), *addresses, *ids, *_NUMBER.findall(_ADDRESS.sub(" ", rest))]


def _cells(text: str) -> list[int]:
    return [row.count("|") for row in _ROW.findall(without_code(text))]


PART = 2000
"""Characters given to the model at once: long texts tempt models to leave things out."""

TRIES = 2
SHOWN = 3
NO_TERMS = "–"


class NotFaithful(ModelError):
    """A translation lacks something of its original, so it can't be used."""


@dataclass
class Translator:
    """Translates pages into the languages of DOCS_TRANSLATE. Translations are `kept`; a dry run makes no other."""

    settings: Settings
    writer: PageWriter
    glossary: Glossary
    kept: KeptTexts

    def wanted(self, page: Page) -> dict[str, str]:
        """By language, the name of each translation that the page should have; known without its Markdown."""
        foreign = page.language in self.settings.tuning.translate_from or (
            not self.settings.tuning.translate_from and page.language not in self.settings.languages
        )
        there = {page.language, *(primary_language(code) for code, url in page.alternates.items() if url != page.url)}
        key = hashlib.sha256(f"{page.hash}\x00{page.language}\x00{self.glossary.digest}".encode()).hexdigest()[:16]
        return {code: f"{code}:{key}" for code in self.settings.translate if foreign and code not in there}

    async def translate(self, page: Page, target: str) -> Page:
        """The page in the target language, still under its own address.

        Raises `NotFaithful` when the model leaves out what must be there, and other `ModelError`s when it fails.
        """
        terms = self.glossary.pairs(page.markdown, page.language, target)
        key = hashlib.sha256(repr((page.markdown, page.language, terms)).encode()).hexdigest()[:24]
        markdown = await self.kept.text(f"{target}/{key}.md", partial(self._translated, page, target))
        titles = [
            next((heading.text for heading in headings_in(text) if heading.level == 1), "")
            for text in (page.markdown, markdown)
        ]
        return replace(
            page,
            markdown=markdown,
            language=target,
            translated_from=page.language,
            title=titles[1] if all(titles) else page.title,
        )

    async def _translated(self, page: Page, target: str) -> str:
        if self.writer.dry:
            raise ModelError("a dry run asks no model")
        markdown = "".join([await self._part(part, page.language, target) for part in _parts(page.markdown)])
        detected = detect(prose(markdown), {target, page.language, *self.settings.languages})
        if detected and detected != target:
            raise NotFaithful(f"the model wrote {detected} instead of {target}")
        return markdown

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
        system = self.writer.system(target, source=source, terms=listed)
        try:
            return _unwrapped((await self.writer.write(system, text, tokens=PART)).strip())
        except BrokenOff as error:
            raise NotFaithful(str(error)) from error


def open_translator(settings: Settings, *, dry: bool = False) -> Translator | None:
    """Returns the translator, or None if DOCS_TRANSLATE is empty. Raises `SettingsError` when something is missing for it."""
    if not settings.translate:
        return None
    if unknown := [code for code in settings.translate if code not in settings.languages]:
        raise SettingsError(
            f"DOCS_TRANSLATE has {', '.join(unknown)}, which DOCS_LANGUAGES lacks: readers can't ask in it."
        )
    writer = open_page_writer(settings, "DOCS_TRANSLATE", "translate", {}, dry=dry)
    return Translator(settings, writer, load_glossary(settings.glossary), KeptTexts(Path(settings.translations)))


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
