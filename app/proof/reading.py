"""Reads the passages of an answer: their words, by stems, and their clauses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain

from app.core.language import vocabulary
from app.text.analysis import fold

LONGEST_STEM = 6  # letters: inflected and derived words of the covered languages share these
KEPT = 2000  # sections whose words are kept, about 8 KB each
CLOSING = ' *_"”“)'
"""What may stand behind the punctuation at the end of a sentence."""

_WORD = re.compile(r"[^\W\d_]+(?:['’]t\b)?")


@lru_cache(maxsize=50_000)
def stem_of(word: str) -> str:
    """The beginning of a word that its forms share, without diacritics."""
    small = fold(word)
    return small if len(small) < 5 else small[: max(4, min(len(small) - 2, LONGEST_STEM))]


@lru_cache(maxsize=50_000)
def folded(word: str) -> str:
    """The word in lower case without diacritics; kept, because the same words come again and again."""
    return fold(word)


def words_in(text: str) -> list[str]:
    """The words of a text as they are written; `don't` is one."""
    return _WORD.findall(text)


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence, an item or a cell: its words without diacritics, in their order, their stems, and the words of the whole."""

    words: tuple[str, ...]
    stems: frozenset[str]
    whole: tuple[str, ...]


_SPACE = re.compile(r"\s{2,}|\n")
_WHOLE = re.compile(r"(?<=[.!?])\s|\n\n|\n(?=[-*+#>|]|\d+[.)]\s)|\s?\|\s?")  # between sentences, items and cells


_STOP = re.compile(r"[,;:()|]\s|\s[–—-]{1,2}\s")  # between clauses of a sentence, as words such as `and`
FEWEST_JOINED = 4  # words of a clause: what `and` joins to fewer belongs to it


@cache
def _joining() -> re.Pattern[str]:
    return re.compile(rf"\s(?:{'|'.join(sorted(vocabulary().and_or))})\s", re.IGNORECASE)


def _collapsed(match: re.Match[str]) -> str:
    return "\n" * min(match[0].count("\n"), 2) or " "


def clauses_of(text: str) -> tuple[Clause, ...]:
    """The clauses of a text that have some words and ask nothing."""
    return tuple(chain.from_iterable(map(_clauses, _WHOLE.split(_SPACE.sub(_collapsed, text)))))


def _clauses(sentence: str) -> Iterator[Clause]:
    said = (part for part in _STOP.split(sentence) if not part.rstrip(CLOSING).endswith("?"))
    parts = [
        tuple(map(folded, words)) for part in said for words in _joined(map(_WORD.findall, _joining().split(part)))
    ]
    whole = tuple(chain.from_iterable(parts))
    return (Clause(part, frozenset(map(stem_of, part)), whole) for part in parts if len(part) > 2)


def _joined(parts: Iterable[list[str]]) -> Iterator[list[str]]:
    short: list[str] = []
    for part in parts:
        short += part
        if len(short) >= FEWEST_JOINED:
            yield short
            short = []
    if short:
        yield short


class _Part:
    """A section of a passage, read."""

    def __init__(self, text: str) -> None:
        self.text = text
        parts = text.casefold().split()
        self.small = " ".join(parts)
        distinct = set(parts)
        whole = set(filter(str.isalpha, distinct))  # most: a pattern over all of a passage takes twice the time
        self.stems = frozenset(map(stem_of, whole.union(words_in(" ".join(distinct - whole)))))

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        return clauses_of(self.text)


_part = lru_cache(maxsize=KEPT)(_Part)
_SECTIONS = re.compile(r"\n(?=#{1,6} )")


class Reading:
    """One passage, read: its text in small letters, and the stems of its words.

    Each answer has other passages, but of the same sections, so that these are kept.
    """

    def __init__(self, text: str) -> None:
        self.parts = [_part(part) for part in _SECTIONS.split(text)]
        self.small = " ".join([part.small for part in self.parts])
        self.stems = frozenset[str]().union(*[part.stems for part in self.parts])

    @cached_property
    def folded(self) -> str:
        """Its text in small letters without diacritics."""
        return fold(self.small)

    @property
    def clauses(self) -> Iterator[Clause]:
        """Its clauses."""
        return chain.from_iterable(part.clauses for part in self.parts)
