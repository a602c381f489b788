"""Removes the list of sources that a model writes at the end of its answer."""

from __future__ import annotations

import re

_ITEM = re.compile(r"\s*(?:(?:[-*+•]|\d{1,3}[.)])(?:\s|\Z)|[\[【<]|https?://)")
_ITEM_UNSURE = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]?|ht{0,2}p?s?:?/{0,2})?\Z")
LONGEST = 4000  # characters; a longer text is more than a list of sources
_NAMES_SOURCE = re.compile(r"\[[^\[\]\n]+\]|://|www\.|【")


class OwnList:
    """Removes a list of sources at the end of a text, below one of the headings, because ours follows."""

    def __init__(self, headings: frozenset[str]) -> None:
        self._headings = headings  # in small letters
        self._held = ""
        self._fresh = True  # nothing has passed yet
        self._heading, self._looked = False, 0  # whether the heading was read, and how much of `_held`

    @property
    def idle(self) -> bool:
        """Whether text without a line end can't belong to such a list."""
        return not (self._held or self._fresh)

    def feed(self, text: str) -> str:
        """The text that can't belong to such a list; line ends wait for the next text."""
        if self.idle and "\n" not in text:
            return text
        text, self._held = self._held + text, ""
        start = 0 if self._fresh else text.find("\n")
        while start >= 0:
            end = self._undecided(text, start)
            if end == len(text) and end - start <= LONGEST:
                self._held = text[start:]
                return text[:start]
            self._fresh, self._heading, self._looked = False, False, 0
            start = text.find("\n", max(end, start + 1))
        return text

    def _undecided(self, text: str, start: int) -> int:
        """How far the lines from here can be a heading and its list: the whole text, or up to a line that isn't."""
        at = start + self._looked
        while at < len(text):
            newline = text.find("\n", at)
            line, whole = (text[at:newline], True) if newline >= 0 else (text[at:], False)
            if line.strip() and not (self._heading and _lists(line, whole=whole)):
                if self._heading or not self._heads(line, whole=whole):
                    return at - 1 if at > start else start
                self._heading = whole
            if not whole:
                break
            at = newline + 1
            self._looked = at - start
        return len(text)

    def _heads(self, line: str, *, whole: bool) -> bool:
        name = line.lstrip(" \t#*_").casefold()
        if whole:
            return name.rstrip(" \t\r*_:#") in self._headings
        return any(heading.startswith(name) or name.rstrip(" \t*_:#") == heading for heading in self._headings)

    def rest(self) -> tuple[str, str]:
        """The rest at the end: text, and the list that was removed."""
        held, self._held, self._fresh = self._held, "", True
        self._heading, self._looked = False, 0
        lines = held.strip().splitlines()
        if len(lines) > 1 and self._heads(lines[0], whole=True) and _NAMES_SOURCE.search(held):
            return "", held
        return held, ""


def _lists(line: str, *, whole: bool) -> bool:
    """Whether a line can be an item of a list, or continue one."""
    unsure = not whole and _ITEM_UNSURE.match(line)
    return bool(unsure or _ITEM.match(line) or line.startswith(("  ", "\t")))
