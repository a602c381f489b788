"""Renumbers the citations of an answer as in its list of sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from app.core.turn import Source

LARGEST = 50  # more passages are never retrieved, so a larger number is a value, not a citation


@dataclass
class Citations:
    """Numbers the cited sections in the order of their first use."""

    passages: tuple[Source, ...]
    first: int = 1  # number of the first source
    words: frozenset[str] = frozenset()  # what models call a passage
    and_or: frozenset[str] = frozenset()  # what models write between numbers
    used: set[int] = field(default_factory=set)  # numbers of the passages that were cited
    _order: list[int] = field(default_factory=list)

    @property
    def any(self) -> bool:
        """Whether something was cited."""
        return bool(self._order)

    def cited(self, words: str) -> str | None:
        """The replacement for these words and their brackets; None if they are no citation.

        Removes a number that no passage has. These are values, not citations: 0, numbers over 50, a list without any
        number of a passage, a range that exceeds them.
        """
        if not (words.isdecimal() and len(words) < 4) and not _pattern(self.words, self.and_or).fullmatch(words):
            return None
        numbers = list(self._numbers(words.partition("†")[0]))
        ours = [number for number in numbers if 1 <= number <= len(self.passages)]
        if not all(1 <= number <= max(LARGEST, len(self.passages)) for number in numbers):
            return None
        if len(numbers) > 1 and not ours:
            return None
        self.used.update(ours)
        return "".join(f"[{number}]" for number in dict.fromkeys(self._number(passage) for passage in ours))

    def invented(self, words: str) -> list[int]:
        """The numbers of a citation that no passage has."""
        return [number for number in self._numbers(words.partition("†")[0]) if number > len(self.passages)]

    def _numbers(self, words: str) -> Iterator[int]:
        """The numbers of a list, and all numbers of a range; 0 for a range that isn't from one passage to a later one."""
        for found in _RANGE.finditer(words):
            low, high = int(found[1]), int(found[2] or found[1])
            yield from range(low, high + 1) if low == high or low < high <= len(self.passages) else [0]

    def _number(self, passage: int) -> int:
        url = self.passages[passage - 1].url
        first = next(i for i, source in enumerate(self.passages) if source.url == url)
        if first not in self._order:
            self._order.append(first)
        return self._order.index(first) + self.first

    def sources(self) -> tuple[Source, ...]:
        """The cited sections, numbered as in the text; the sections of all passages if none was cited."""
        if not self._order:
            for passage in range(1, len(self.passages) + 1):
                self._number(passage)
        return tuple(
            replace(self.passages[index], number=number) for number, index in enumerate(self._order, self.first)
        )


_RANGE = re.compile(r"(\d{1,3})(?:\s{0,9}[-–—\u2011]\s{0,9}[^\W\d]{0,30}\s{0,9}(\d{1,3}))?")


@lru_cache(maxsize=8)
def _pattern(words: Iterable[str], and_or: Iterable[str]) -> re.Pattern[str]:
    """One number or a list of them: [2], [^2], [1, 2], [1–3], [passage 2], [1 and 2], [1†source]."""
    called = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    number = rf"(?:(?:{called})\.?\s*)?[\^#]?\d{{1,3}}" if called else r"[\^#]?\d{1,3}"
    between = "|".join((r"[,;&–—\u2011-]", *(rf"\b{re.escape(word)}\b" for word in sorted(and_or))))
    return re.compile(rf"\s*{number}(?:\s*(?:{between})\s*{number})*\s*(?:†.*)?", re.IGNORECASE)
