"""Separates the reasoning of a model (`<think>`) from its answer, even if the tags arrive in pieces."""

from __future__ import annotations

import re

from app.core.turn import Reasoning, Text

OPEN, CLOSE = "<think>", "</think>"
# characters kept before the first word: endless blank lines would be read again and again
MAX_BLANK = 100
_WHOLE = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


class ThinkFilter:
    """Splits a stream of text into answer and reasoning. Only a tag at the start counts, because a page may quote it."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._answering = False
        self._after_thinking = False

    @staticmethod
    def remove(text: str) -> str:
        """The answer without the reasoning before it."""
        start = text.lstrip()
        if start.startswith(OPEN):
            return _WHOLE.sub("", start, count=1).strip()
        # the chat templates of some servers drop the opening tag
        head, close, tail = text.partition(CLOSE)
        return tail.strip() if close and OPEN not in head else text

    def feed(self, text: str) -> list[Text | Reasoning]:
        """Add a piece of text; the events that are certain so far."""
        if self._answering:
            return [Text(text)]
        self._held += text
        return self._think() if self._inside else self._begin()

    def _begin(self) -> list[Text | Reasoning]:
        start = self._held.lstrip()
        if start.startswith(OPEN):
            self._inside, self._held = True, start[len(OPEN) :]
            return self._think()
        if OPEN.startswith(start):  # empty, or part of the tag
            self._held = self._held[-MAX_BLANK:]
            return []
        return self._answer(start if self._after_thinking else self._held)

    def _think(self) -> list[Text | Reasoning]:
        thought, close, rest = self._held.partition(CLOSE)
        if close:
            self._inside, self._after_thinking, self._held = False, True, rest
            return [*([Reasoning(thought)] if thought else []), *self._begin()]
        keep = next((n for n in range(len(CLOSE) - 1, 0, -1) if self._held.endswith(CLOSE[:n])), 0)
        thought = self._held[: len(self._held) - keep]
        self._held = self._held[len(thought) :]
        return [Reasoning(thought)] if thought else []

    def _answer(self, text: str) -> list[Text | Reasoning]:
        self._answering, self._held = True, ""
        return [Text(text)]

    def flush(self) -> list[Text | Reasoning]:
        """The rest of the text, at the end of the stream."""
        held, self._held = self._held, ""
        if not held.strip():
            return []
        return [Reasoning(held)] if self._inside else [Text(held)]
