"""The words of a query in a text: how well the text has them, where they stand, and an excerpt around them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple

from pydantic import Field

from app.text.analysis import RUN, SHORTEST_STEM, WORD, fold, runs, stem, words_of
from app.text.blocks import blocks, readable

EXCERPT = 200  # characters
MOST_WORDS = 50  # of a query
LONGEST_WORD = 40  # letters, before and after they are folded
BEFORE = 40  # of them before the first word
PARSED = 2 * EXCERPT  # characters of Markdown, as far as paragraphs let it
STEM_FOUND, BEGINNING_FOUND = 0.8, 0.95  # of the whole word
LONGEST_ENDING = 4  # letters
CUT = "…"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text. All parts together are the text."""

    text: str
    match: Annotated[bool, Field(description="Whether it is a word of the query.")]


@dataclass(frozen=True)
class QueryWord:
    """A folded word of the query with its stem. `open`: it may be the beginning of a longer one; `near`: the word that was perhaps meant."""

    text: str
    stem: str
    open: bool = False
    near: str = ""

    def best_in(self, fields: Sequence[str], weights: Sequence[float]) -> float:
        """Returns how well a text has the word: the highest weight of a field that has it, less if only a form of it is there.

        Fields are `folded_words`; weights fall.
        """
        begun, whole, stem, beginning_found = self._forms
        best = 0.0
        for words, weight in zip(fields, weights, strict=True):
            if weight <= best:
                break
            if begun in words:
                share = 1.0 if whole in words else beginning_found
            elif (stem and stem in words) or (self.near and f" {self.near}" in words):
                share = STEM_FOUND
            else:
                continue
            best = max(best, weight * share)
        return best

    @cached_property
    def _forms(self) -> tuple[str, str, str, float]:
        """The word as words begin with it, as a whole, its stem, and what its beginning is worth; made once for many texts."""
        beginning_found = BEGINNING_FOUND if self.open else STEM_FOUND * self._inflected
        return f" {self.text}", f" {self.text} ", f" {self.stem}" if self._inflected else "", beginning_found

    @property
    def _inflected(self) -> bool:
        """True if it has other forms that are looked for; the beginning of a short word begins too many others."""
        return len(self.stem) >= SHORTEST_STEM

    def end_in(self, folded: str, start: int) -> int:
        """Returns the end of the word, or a form of it, that begins at `start` of a folded text; 0 if another stands there."""
        if folded.startswith(self.text, start):
            end = start + len(self.text)
            if self.open:
                return _goes_on(RUN, folded, end)
            if not folded[end : end + 1].isalnum():
                return end
        if self._inflected and folded.startswith(self.stem, start):
            stem_end = start + len(self.stem)
            end = _goes_on(WORD, folded, stem_end)
            return end if end - stem_end <= LONGEST_ENDING else 0
        if self.near and folded.startswith(self.near, start):
            return _goes_on(RUN, folded, start + len(self.near))
        return 0


class Place(NamedTuple):
    """Place of a word in a text, and its number among the words of the query."""

    start: int
    end: int
    number: int


@dataclass(frozen=True)
class QueryWords:
    """The words of a query."""

    words: tuple[QueryWord, ...]

    @classmethod
    def of(cls, query: str, language: str, *, open_end: bool = False, near: str = "") -> QueryWords:
        """The last words of this text that have at most `LONGEST_WORD` letters; with `open_end`, the last may be incomplete,
        and `near` is the word that was perhaps meant by the last.
        """
        short = (fold(run) for run in runs(query) if len(run) <= LONGEST_WORD)
        words = list(dict.fromkeys(word for word in short if 0 < len(word) <= LONGEST_WORD))[-MOST_WORDS:]
        last = len(words) - 1
        made = (_word(text, language, is_open=open_end and i == last) for i, text in enumerate(words))
        return cls(tuple(replace(word, near=near) if word.open else word for word in made))

    def pieces(self, text: str) -> tuple[Piece, ...]:
        """The text in pieces, with the words of the query marked."""
        pieces: list[Piece] = []
        end = 0
        for place in self._places(text):
            pieces += (Piece(text[end : place.start], match=False), Piece(text[place.start : place.end], match=True))
            end = place.end
        pieces.append(Piece(text[end:], match=False))
        return tuple(piece for piece in pieces if piece.text)

    def excerpt(self, markdown: str) -> tuple[Piece, ...]:
        """The part of a text, without its Markdown, with most of the words, in pieces; its beginning if it has none. Cuts are marked."""
        first, last, paragraphs = self._paragraphs(markdown)
        markdown = "".join(paragraphs[first:last]).lstrip("\n")
        indent = len(markdown) - len(markdown.lstrip(" "))  # of a list that begins before: its fences would be text
        text = readable("\n".join(line.removeprefix(" " * indent) for line in markdown.split("\n")))
        start = _start(text, _best_start(self._places(text))) if len(text) > EXCERPT else 0
        end = len(text) if len(text) - start <= EXCERPT else text.rfind(" ", start, start + EXCERPT)
        end = end if end > start else start + EXCERPT
        cut_before, cut_after = first or start, last < len(paragraphs) or end < len(text)
        return self.pieces(f"{f'{CUT} ' if cut_before else ''}{text[start:end]}{f' {CUT}' if cut_after else ''}")

    def _paragraphs(self, markdown: str) -> tuple[int, int, list[str]]:
        """The paragraphs, and which of them have most of the words: reading the Markdown of all of a long text takes longer than its search."""
        if len(markdown) <= PARSED:
            return 0, 1, [markdown]
        paragraphs = [
            part for code, piece in blocks(markdown) for part in ([piece] if code else _PARAGRAPH.findall(piece))
        ]
        found = [
            sum(word.stem in folded for word in self.words)
            for folded in (part.translate(_FOLDED) for part in paragraphs)
        ]
        first = last = found.index(max(found))
        length = 0
        while last < len(paragraphs) and length < EXCERPT + BEFORE:
            length += len(paragraphs[last])
            last += 1
        while first and length < PARSED:  # what stands before the words
            first -= 1
            length += len(paragraphs[first])
        return first, last, paragraphs

    def _places(self, text: str) -> list[Place]:
        """Finds the words. They are compared, because a pattern of a reader's words takes as long as they are odd."""
        folded = text.translate(_FOLDED)
        places: list[Place] = []
        end = 0
        for match in WORD.finditer(folded):
            start = match.start()
            if start < end:
                continue
            for number in self._by_beginning.get(folded[start : start + 2]) or self._by_beginning.get(
                folded[start], ()
            ):
                if end_here := self.words[number].end_in(folded, start):
                    places.append(Place(start, end_here, number))
                    end = end_here
                    break
        return places

    @cached_property
    def _by_beginning(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the words by their first two letters, and of those of one letter by that; made once for all texts of a search."""
        numbers: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            for beginning in {word.text[:2], word.stem[:2], word.near[:2]} - {""}:
                numbers.setdefault(beginning, []).append(number)
        return numbers


def _goes_on(signs: re.Pattern[str], text: str, start: int) -> int:
    return match.end() if (match := signs.match(text, start)) else start


_PARAGRAPH = re.compile(r"(?s).+?(?:\n\s*\n|\Z)")


class _Folded(dict[int, str]):
    """For `str.translate`: each letter folded to one letter, so that places stay what they are."""

    def __missing__(self, code: int) -> str:
        folded = fold(chr(code))
        return self.setdefault(code, folded if len(folded) == 1 else chr(code))


_FOLDED = _Folded()


def _word(text: str, language: str, *, is_open: bool) -> QueryWord:
    root = stem(text, language) if text.isalpha() else text
    return QueryWord(text, root if len(root) >= SHORTEST_STEM else text, is_open)


def _best_start(places: Sequence[Place]) -> int:
    """Returns the start of the part with most different words; of several, the first."""
    starts = [place.start for place in places]
    ends = (bisect_left(starts, start + EXCERPT - BEFORE) for start in starts)
    words = [len({place.number for place in places[i:end]}) for i, end in enumerate(ends)]
    return starts[words.index(max(words))] if words else 0


def _start(text: str, best: int) -> int:
    """Where to begin, so that the words at `best` are seen: with their sentence or row, if that begins near, else with a word."""
    near = max(0, best - 2 * BEFORE)
    if begun := max(text.rfind(sign, near, best) for sign in (". ", "• ")) + 1:
        return begun + 1
    at = max(0, min(best - BEFORE, len(text) - EXCERPT))
    return (text.find(" ", at - 1, at + BEFORE) + 1 or at) if at else 0


def folded_words(text: str) -> str:
    """The words of the text, folded, each between blanks."""
    return f" {' '.join(word for run in runs(text) for word in words_of(run))} "
