"""The words of a query in a text: how well the text has them, where they stand, and an excerpt around them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from app.text.analysis import fold, runs, stem, words_of

EXCERPT = 200  # characters
MOST_WORDS = 50  # of a query
BEFORE = 40  # of them before the first word
STEM_FOUND, BEGINNING_FOUND = 0.8, 0.95  # of the whole word
SHORTEST_STEM = 3  # letters
LONGEST_ENDING = 4  # letters
CUT = "…"


class Piece(NamedTuple):
    """A part of a text; `match` if it is a word of the query."""

    text: str
    match: bool


@dataclass(frozen=True)
class SoughtWord:
    """A folded word of the query with its stem. `open`: it may be the beginning of a longer one."""

    text: str
    stem: str
    open: bool = False

    def best_in(self, fields: Sequence[str], weights: Sequence[float]) -> float:
        """How well a text has the word: the highest weight of a field that has it, less if only a form of it is there.

        Fields are `folded_words`; weights fall.
        """
        begun, whole, stem, beginning_found = self._forms
        best = 0.0
        for words, weight in zip(fields, weights, strict=True):
            if weight <= best:
                break
            if begun in words:
                found = 1.0 if whole in words else beginning_found
            elif stem and stem in words:
                found = STEM_FOUND
            else:
                continue
            best = max(best, weight * found)
        return best

    @cached_property
    def _forms(self) -> tuple[str, str, str, float]:
        """The word as words begin with it, as a whole, its stem, and what its beginning is worth; made once for many texts."""
        beginning_found = BEGINNING_FOUND if self.open else STEM_FOUND * self._inflected
        return f" {self.text}", f" {self.text} ", f" {self.stem}" if self._inflected else "", beginning_found

    @property
    def _inflected(self) -> bool:
        """Whether it has other forms that are looked for; the beginning of a short word begins too many others."""
        return len(self.stem) >= SHORTEST_STEM

    @property
    def pattern(self) -> str:
        """A regular expression for the word and its forms in folded text."""
        if self.open:
            return rf"{re.escape(self.text)}\w*"
        form = rf"|{re.escape(self.stem)}[^\W_]{{0,{LONGEST_ENDING}}}" if self._inflected else ""
        return rf"(?:{re.escape(self.text)}{form})(?![^\W_])"


@dataclass(frozen=True, slots=True)
class Sought:
    """The words of a query."""

    words: tuple[SoughtWord, ...]

    @classmethod
    def of(cls, query: str, language: str, *, open_end: bool = False) -> Sought:
        """The words of this text; with `open_end`, the last one may be incomplete."""
        found = list(dict.fromkeys(fold(run) for run in runs(query)))
        last = len(found) - 1
        return cls(tuple(_word(text, language, is_open=open_end and i == last) for i, text in enumerate(found)))

    def pieces(self, text: str) -> tuple[Piece, ...]:
        """The text in pieces, with the words of the query marked."""
        found: list[Piece] = []
        end = 0
        for place in self._places(text):
            found += (Piece(text[end : place.start()], match=False), Piece(text[slice(*place.span())], match=True))
            end = place.end()
        found.append(Piece(text[end:], match=False))
        return tuple(piece for piece in found if piece.text)

    def excerpt(self, text: str) -> tuple[Piece, ...]:
        """The part of the text with most of the words, in pieces; its beginning if it has none. Cuts are marked."""
        start = _best_start(self._places(text)) if len(text) > EXCERPT else 0
        start = _after_blank(text, max(0, min(start - BEFORE, len(text) - EXCERPT)))
        end = len(text) if len(text) - start <= EXCERPT else text.rfind(" ", start, start + EXCERPT)
        end = end if end > start else start + EXCERPT
        shown = f"{f'{CUT} ' if start else ''}{text[start:end]}{f' {CUT}' if end < len(text) else ''}"
        return self.pieces(shown)

    def _places(self, text: str) -> list[re.Match[str]]:
        """Where the words stand; the group of each is its number."""
        if not self.words:
            return []
        return list(re.finditer(self.pattern, text.translate(_FOLDED)))

    @property
    def pattern(self) -> str:
        """A regular expression for all words in folded text."""
        words = "|".join(f"({word.pattern})" for word in self.words[:MOST_WORDS])
        return rf"(?<![^\W_])(?:{words})"


class _Folded(dict[int, str]):
    """For `str.translate`: each letter folded to one letter, so that places stay what they are."""

    def __missing__(self, code: int) -> str:
        folded = fold(chr(code))
        self[code] = folded if len(folded) == 1 else chr(code)
        return self[code]


_FOLDED = _Folded()


def _word(text: str, language: str, *, is_open: bool) -> SoughtWord:
    root = text if is_open or not text.isalpha() else stem(text, language)
    return SoughtWord(text, root if len(root) >= SHORTEST_STEM else text, is_open)


def _best_start(places: Sequence[re.Match[str]]) -> int:
    """Where the part with most different words begins; of several, the first."""
    starts = [place.start() for place in places]
    best = (0, 0)
    for i, start in enumerate(starts):
        within = places[i : bisect_left(starts, start + EXCERPT - BEFORE)]
        best = max(best, (len({place.lastindex for place in within}), -start))
    return -best[1]


def _after_blank(text: str, at: int) -> int:
    if not at or text[at - 1].isspace():
        return at
    blank = text.find(" ", at, at + BEFORE)
    return blank + 1 if blank >= 0 else at


def folded_words(text: str) -> str:
    """The words of the text, folded, each between blanks."""
    return f" {' '.join(_all_words(text))} "


def _all_words(text: str) -> Iterable[str]:
    return (word for run in runs(text) for word in words_of(run))
