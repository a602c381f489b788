"""Chooses the section of a chunk to link to, and finds sections whose heading is the question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from app.core.prompts import Language
from app.core.turn import Turn
from app.core.types import Chunk, Hit, Section
from app.text.analysis import fold
from app.text.language import without_stopwords

STEM = 5  # letters; endings usually begin after them
FEWEST_WORDS = 2  # single words are often headings
_WORD = re.compile(r"[^\W_]+")
_STEMS = re.compile(rf"([^\W_]{{3,{STEM}}})[^\W_]*")


def stems(text: str) -> set[str]:
    """The first letters of the words, folded; most inflected forms share them."""
    # folding each letter took a tenth of an answer's CPU
    return set(_STEMS.findall(text.casefold() if text.isascii() else fold(text)))


@lru_cache(maxsize=500)  # the passages of a question have 24,000 characters, so this is a few megabytes
def read_section(text: str) -> tuple[str, frozenset[str]]:
    """The text of a section folded, and its stems. Kept, because answers cite the same sections again and again."""
    folded = fold(text)
    return folded, frozenset(_STEMS.findall(folded))


def asked_stems(turn: Turn) -> set[str]:
    """The stems of the question, the refined question and all keywords."""
    keywords = (*turn.keywords.values(), *turn.more_keywords.values())
    return stems(" ".join((turn.referred, turn.question, turn.refined, *keywords)))


def best_section(chunk: Chunk, wanted: Iterable[str]) -> Section | None:
    """The section with most of the wanted stems in heading and text; on a tie the one with most in its heading, then the
    first one.
    """
    if len(chunk.sections) < 2:
        return chunk.sections[0] if chunk.sections else None
    found = _matches(section_texts(chunk), set(wanted))
    return chunk.sections[found.index(max(found))]


def _matches(texts: Iterable[tuple[str, str]], wanted: set[str]) -> list[tuple[int, int]]:
    """How many of the wanted stems each section has in heading and text, and how many in its heading."""
    return [
        (len(read_section(f"{heading} {text}")[1] & wanted), len(read_section(heading)[1] & wanted))
        for heading, text in texts
    ]


def section_texts(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """The heading of each section and its text in the chunk."""
    ends = [*(section.offset for section in chunk.sections[1:]), len(chunk.text)]
    for section, end in zip(chunk.sections, ends, strict=True):
        yield " ".join(section.path[-1:]), chunk.text[section.offset : end]


def section_text(chunk: Chunk, section: Section | None) -> str:
    """The text of this section in the chunk, all of it without a section."""
    if section is None:
        return chunk.text
    later = [one.offset for one in chunk.sections if one.offset > section.offset]
    return chunk.text[section.offset : min(later, default=len(chunk.text))]


def section_reason(chunk: Chunk, wanted: Iterable[str]) -> str:
    """Why `best_section` chose its section, with the words of the question that are in it."""
    if not chunk.sections:
        return "the passage lies in no section"
    asked, parts = set(wanted), list(section_texts(chunk))
    found = _matches(parts, asked)
    best = max(found)
    heading, text = parts[found.index(best)]
    places = {"heading": _asked_words(heading, asked), "text": _asked_words(text, asked - stems(heading))}
    found_words = "; ".join(f"{place}: {', '.join(words)}" for place, words in places.items() if words)
    if len(parts) == 1:
        chosen = "the passage's only section"
    elif not best[0] or found.count(best) > 1:
        chosen = f"the first of the passage's sections with most words of question and keywords ({best[0]})"
    else:
        chosen = f"the passage's section with most words of question and keywords ({best[0]})"
    return f"{chosen}; {found_words}" if found_words else chosen


def _asked_words(text: str, asked: set[str]) -> list[str]:
    """One word of the text for each of these stems that it has."""
    words: dict[str, str] = {}
    for found in _WORD.finditer(text):
        for stem in stems(found[0]) & asked:
            words.setdefault(stem, found[0])
    return list(words.values())


def headed_first(hits: Sequence[Hit], question: str, language: Language) -> tuple[Hit, ...]:
    """The hits; first those with a heading or title that is the question word for word, then those that repeat it but for
    function words.

    A question that repeats a heading or a suggested question asks for that section.
    """
    asked = _words(question)
    wanted = stems(without_stopwords(question, language))

    def place(hit: Hit) -> int:
        headings = {hit.chunk.title, *(section.path[-1] for section in hit.chunk.sections if section.path)}
        if len(asked) >= FEWEST_WORDS and any(_words(heading) == asked for heading in headings):
            return 0
        if len(wanted) < FEWEST_WORDS:
            return 2
        near = [heading for heading in headings if stems(heading) >= wanted]  # few match, and the next check takes time
        return 1 if any(stems(without_stopwords(heading, language)) == wanted for heading in near) else 2

    return tuple(sorted(hits, key=place))


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))
