"""The words by which answers are judged: which of them say something, and which are numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from app.core.language import Language
from app.text.analysis import folded, root

MOST_WORDS = 50_000  # that are kept
SHORTEST = 4  # letters of a word that says something


class Wording:
    """The words of all languages of a service; made once.

    `plain` say nothing of their own: function words, and what answers are made of. `numbers` are small ones in words, of which
    `digits` makes digits.
    """

    def __init__(self, languages: Mapping[str, Language]) -> None:
        self.languages = languages
        parts = ((known.traits.stopwords, known.replies.plain, known.questions.asking) for known in languages.values())
        self.plain = frozenset[str]().union(*(words for part in parts for words in part))
        self.telling = lru_cache(MOST_WORDS)(self._telling)
        self.digits = lru_cache(MOST_WORDS)(self._digits)
        self.numbers: dict[str, re.Pattern[str]] = {}
        for known in languages.values():
            for number, words in (known.dates.get("numbers", {}) | known.dates.get("large_numbers", {})).items():
                before = f"{self.numbers[number].pattern}|" if number in self.numbers else ""
                self.numbers[number] = re.compile(rf"{before}\b(?:{words})\b")

    def _digits(self, word: str) -> str:
        """The digits of a small number in words; any other word itself, and `one`, which may be no number."""
        small = folded(word)
        several = ((number, pattern) for number, pattern in self.numbers.items() if number != "1")
        return next((number for number, pattern in several if pattern.fullmatch(small)), word)

    def _telling(self, word: str) -> str:
        """The stem of a word that says something; "" for others."""
        if word.isupper():
            return root(word)
        small = folded(word)
        tells = len(small) >= SHORTEST and small not in self.plain
        return root(small) if tells else ""
