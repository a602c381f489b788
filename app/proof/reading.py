"""Reads the passages of an answer: their words, by stems."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

from app.text.analysis import fold, root, words

KEPT = 2000  # sections whose words are kept, about 8 KB each
CLOSING = ' *_"”“)'
"""What may stand behind the punctuation at the end of a sentence."""


class _Part:
    """A section of a passage, read."""

    def __init__(self, text: str) -> None:
        self.text = text
        parts = text.casefold().split()
        self.small = " ".join(parts)
        distinct = set(parts)
        whole = set(filter(str.isalpha, distinct))  # most: a pattern over all of a passage takes twice the time
        self.stems = frozenset(map(root, whole.union(words(" ".join(distinct - whole)))))

    @cached_property
    def folded(self) -> str:
        """Its text in small letters without diacritics."""
        return fold(self.small)


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
