"""The language of a page: its text decides when it is clear, else what is declared. Contradictions are reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

from langdetect.detector import Detector
from langdetect.lang_detect_exception import LangDetectException

from app.core.language import Vocabulary, vocabulary
from app.text.analysis import fold
from app.text.fences import blocks
from app.text.language import letter_statistics, profiles_of
from ingestion.language_tags import primary_language

MIN_WORDS = 40
SURE = 0.95
SAMPLE = 250
"""Characters of each third of a long text that are examined: a foreign preface alone decides nothing."""

FEWEST_FUNCTION_WORDS = 0.15
"""The least share of function words in a text of the language."""

_MARKUP = (
    re.compile(r"`[^`\n]*`"),
    re.compile(r"(?m)^[ \t]*\|.*$"),  # tables
    re.compile(r"!?\[([^\[\]]*+)\]\([^\[)]*+\)"),
    re.compile(r"<[^<>]*+>|https?://\S+|\{#[^{}]*+\}"),
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w.-]+")
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class PageLanguage:
    """The language of a page. `note` is for the report: a contradiction, or a language that isn't configured."""

    code: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Languages:
    """The languages to detect: the configured ones, and those of `words`, which must not be mistaken for them."""

    configured: Sequence[str]
    default: str
    words: Vocabulary = field(default_factory=vocabulary)

    @property
    def known(self) -> tuple[str, ...]:
        """The codes of all of them."""
        return tuple(dict.fromkeys((*self.configured, *self.words.codes)))


def page_language(markdown: str, url: str, declared: Mapping[str, str], languages: Languages) -> PageLanguage:
    """The language of a page, by its text when that is clear, else by the first declaration.

    Declarations in order: metadata of a document, front matter, suffix in the address (`.cs.`), folder in it (`/cs/`), then `declared`.
    A language that isn't configured is kept as what it is, with a note: Slovak never passes as Czech.
    """
    declaration = _declared(url, declared, languages)
    found = detect(prose(markdown), languages.known, languages.words)
    code = found or (declaration[1] if declaration else languages.default)
    notes: list[str] = []
    if found and declaration and found != declaration[1]:
        notes.append(f"the text is {found}, {declaration[0]} says {declaration[1]}")
    if unknown := not_configured(code, languages.configured):
        notes.append(unknown)
    return PageLanguage(code, "; ".join(notes))


def not_configured(code: str, configured: Sequence[str]) -> str:
    """A note about a language that isn't configured; empty for the others."""
    return "" if code in configured else f"{code} isn't one of the configured languages ({', '.join(configured)})"


def prose(markdown: str) -> str:
    """The words of a page without code, tables, links' addresses and markup."""
    text = "".join(piece for code, piece in blocks(markdown) if not code)
    for pattern in _MARKUP:
        text = pattern.sub(r"\1" if pattern.groups else " ", text)
    return _MAIL.sub(" ", text) if "@" in text else text


def detect(text: str, languages: Iterable[str], words: Vocabulary | None = None) -> str:
    """The language of a text of at least 40 words when it is clear among these, else nothing."""
    if sum(1 for _ in islice(_WORD.finditer(text), MIN_WORDS)) < MIN_WORDS:
        return ""
    words = words or vocabulary()
    codes, sample = tuple(sorted(set(languages))), _sample(text)
    if by_words := _without_statistics(sample, codes, words):
        return by_words
    detector = Detector(_factory(codes))
    detector.append(sample)
    try:
        likely = {guess.lang: guess.prob for guess in detector.get_probabilities()}
    except LangDetectException:  # no letters that any profile knows
        return ""
    for language, probability in likely.items():
        if probability >= SURE:
            return str(language)
    for close in words.close:  # to each other: the likelier one
        if sum(likely.get(code, 0.0) for code in close) >= SURE:
            return max(sorted(close), key=lambda code: likely.get(code, 0.0))
    return ""


def _without_statistics(text: str, codes: Sequence[str], words: Vocabulary) -> str:
    """The language by function words, among those that langdetect doesn't know; empty for other languages."""
    unknown = [code for code in codes if code in words.function_words and not profiles_of([code])]
    if not unknown:
        return ""
    written = [fold(word) for word in _WORD.findall(text)]
    shares = {
        code: sum(word in own for word in written) / len(written)
        for code, own in words.function_words.items()
        if code in codes
    }
    best = max(shares, key=lambda code: shares[code])
    return best if best in unknown and shares[best] >= FEWEST_FUNCTION_WORDS else ""


def _sample(text: str) -> str:
    """The beginning of the text, of its second and of its last third, each up to the end of a word."""
    if len(text) <= 3 * SAMPLE:
        return text
    starts = (0, len(text) // 3, len(text) - SAMPLE)
    pieces = [text[start : start + SAMPLE] for start in starts]
    return " ".join(piece.partition(" ")[2] or piece for piece in pieces)


def _declared(url: str, declared: Mapping[str, str], languages: Languages) -> tuple[str, str] | None:
    """(place, language) of the first declaration."""
    places = dict(declared)
    known = {*languages.known, *languages.words.aliases}
    path = unquote(urlsplit(url).path)
    ordered = [(place, places.pop(place, "")) for place in ("metadata", "front matter")]
    if match := re.search(r"\.([a-z]{2,3})(?:\.[a-z]+)?$", path):
        ordered.append(("the address", match[1] if match[1] in known else ""))
    folders = [part for part in path.lower().split("/")[:-1] if re.fullmatch(r"[a-z]{2,3}(?:-[a-z]{2})?", part)]
    ordered.append(("the address", next((part for part in folders if part.partition("-")[0] in known), "")))
    ordered.extend(places.items())
    for place, code in ordered:
        if code and re.fullmatch(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]+)*", code.strip()):
            return place, primary_language(code, languages.words)
    return None


@cache
def _factory(languages: tuple[str, ...]) -> Any:
    return letter_statistics(profiles_of(languages))
