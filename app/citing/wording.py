"""Replaces what only retrieval calls "passages" or "context" by readers' words, in the first line of an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

LONGEST = 450  # characters of the first line that are read; a refusal is no longer
_LAST_WORD = re.compile(r"(?<![^\W_])[^\W_]{1,60}\s{0,9}\Z")
_END = re.compile(r"[\n`]")  # code stays as it is


class Wording:
    """Rewrites a text piece by piece. Words that the reader or a page uses stay: `known` gives all their text."""

    def __init__(self, words: Mapping[str, str], known: Callable[[], str]) -> None:
        self._words, self._known = words, known
        self._held = ""
        self._left = LONGEST if words else 0

    def feed(self, text: str) -> str:
        """The text that is decided by now; a word that may be one of ours waits for what follows it."""
        if not self._left:
            return text
        text, self._held = self._held + text, ""
        if (end := _END.search(text, 0, self._left)) or len(text) >= self._left:
            at, self._left = end.start() if end else self._left, 0
            return self._replaced(text[:at]) + text[at:]
        last = _LAST_WORD.search(text)
        if last and any(word.startswith(last[0].strip().casefold()) for word in self._words):
            text, self._held = text[: last.start()], last[0]
        self._left -= len(text)
        return self._replaced(text)

    def rest(self) -> str:
        """The rest of the text at its end."""
        held, self._held = self._held, ""
        return self._replaced(held)

    def _replaced(self, text: str) -> str:
        return _pattern(tuple(self._words)).sub(self._word, text) if text else text

    def _word(self, found: re.Match[str]) -> str:
        word = self._words[found[0].casefold()]
        if found[0].casefold() in self._known().casefold():
            return found[0]
        return word.capitalize() if found[0][0].isupper() else word


@lru_cache(maxsize=32)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """The words, but not where they name a passage by its number: that is a citation."""
    longest_first = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![\w\[(-])(?:{longest_first})(?![\w-]|\s*[\[\d])", re.IGNORECASE)
