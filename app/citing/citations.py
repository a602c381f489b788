"""Citations of an answer, numbered as in its list of sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

LARGEST = 50  # more passages are never retrieved, so a larger number is a value, not a citation


@dataclass
class Citations:
    """Numbers the cited pages in the order of their first use."""

    pages: tuple[str, ...]  # the page of each passage
    first: int = 1  # number of the first source
    words: frozenset[str] = frozenset()  # what models call a passage
    and_or: frozenset[str] = frozenset()  # what models write between numbers
    used: set[int] = field(default_factory=set)  # numbers of the passages that were cited
    hidden: list[str] = field(default_factory=list)  # citations that readers don't get, but whose passages are used
    _order: list[str] = field(default_factory=list)
    _read: dict[str, list[int] | None] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """True if something was cited."""
        return bool(self._order)

    def cited(self, words: str) -> str | None:
        """The replacement for these words and their brackets; None if they are no citation.

        Removes a number that no passage has. These are values, not citations: 0, numbers over 50, a list without any
        number of a passage, a range that exceeds them.
        """
        ours = self._ours(words)
        if ours is None:
            return None
        self.used.update(ours)
        return "".join(f"[{number}]" for number in dict.fromkeys(self._number(passage) for passage in ours))

    def count_hidden(self) -> None:
        """Counts the passages of citations that readers don't get, after those that they got."""
        for words in self.hidden:
            self.cited(words)
        self.hidden.clear()

    def numbers(self, words: str) -> list[int]:
        """The passages that these words cite; empty if they are no citation."""
        return self._ours(words) or []

    def _ours(self, words: str) -> list[int] | None:
        if words not in self._read:  # the same few again and again
            self._read[words] = self._found(words)
        return self._read[words]

    def _found(self, words: str) -> list[int] | None:
        if not (words.isdecimal() and len(words) < 4) and not _pattern(self.words, self.and_or).fullmatch(words):
            return None
        numbers = list(self._numbers(words.partition("†")[0]))
        ours = [number for number in numbers if 1 <= number <= len(self.pages)]
        if not all(1 <= number <= max(LARGEST, len(self.pages)) for number in numbers):
            return None
        return None if len(numbers) > 1 and not ours else ours

    def invented(self, words: str) -> list[int]:
        """The numbers of a citation that no passage has."""
        return [number for number in self._numbers(words.partition("†")[0]) if number > len(self.pages)]

    def _numbers(self, words: str) -> Iterator[int]:
        """The numbers of a list, and all numbers of a range; 0 for a range that isn't from one passage to a later one."""
        for match in _RANGE.finditer(words):
            low, high = int(match[1]), int(match[2] or match[1])
            yield from range(low, high + 1) if low == high or low < high <= len(self.pages) else [0]

    def _number(self, passage: int) -> int:
        page = self.pages[passage - 1]
        if page not in self._order:
            self._order.append(page)
        return self._order.index(page) + self.first

    def listed(self) -> list[tuple[int, list[int]]]:
        """The cited pages, numbered as in the text, each with its cited passages; all pages if none was cited."""
        used = self.used or set(range(1, len(self.pages) + 1))
        order = self._order or list(dict.fromkeys(self.pages))
        passages = [[number for number in sorted(used) if self.pages[number - 1] == page] for page in order]
        return list(enumerate(passages, self.first))


def inner(bracket: str) -> str:
    """The words in the brackets of a citation, without the address behind it."""
    return bracket.partition("](")[0].strip("[]【】")


BRACKET = re.compile(r"(?:\[\[?[^\[\]`\n]{1,80}\]?\]|【[^【】`\n]{1,80}】)(?:\([^()\s]{0,2000}\))?")
"""Text that can be a citation, with the address that some models write behind it."""
_RANGE = re.compile(r"(\d{1,3})(?:\s{0,9}[-–—\u2011]\s{0,9}[^\W\d]{0,30}\s{0,9}(\d{1,3}))?")


@lru_cache(maxsize=8)
def _pattern(words: Iterable[str], and_or: Iterable[str]) -> re.Pattern[str]:
    """One number or a list of them: [2], [^2], [1, 2], [1–3], [passage 2], [1 and 2], [1†source]."""
    called = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    number = rf"(?:(?:{called})\.?\s*)?[\^#]?\d{{1,3}}" if called else r"[\^#]?\d{1,3}"
    between = "|".join((r"[,;&–—\u2011-]", *(rf"\b{re.escape(word)}\b" for word in sorted(and_or))))
    return re.compile(rf"\s*{number}(?:\s*(?:{between})\s*{number})*\s*(?:†.*)?", re.IGNORECASE)
