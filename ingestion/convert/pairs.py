"""Replaces text between openings and closings in linear time, also when many never close."""

from __future__ import annotations

import re
from collections.abc import Callable

Change = Callable[[re.Match[str], re.Match[str]], str | None]
"""Returns the replacement for the text from opening to closing, or None to keep it."""


def replaced(text: str, opening: re.Pattern[str], closing: re.Pattern[str], change: Change) -> str:
    """The text with each opening changed, together with all up to the next closing.

    It is what a pattern `opening.*?closing` finds, which takes quadratic time where many openings are never closed.
    """
    kept, at, begin = list[str](), 0, 0
    end: re.Match[str] | None = None
    while start := opening.search(text, begin):
        if end is None or end.start() < start.end():
            end = closing.search(text, start.end())
        if end is None:
            break
        made = change(start, end)
        begin = start.end()
        if made is not None:
            kept += [text[at : start.start()], made]
            at = begin = end.end()
    return "".join([*kept, text[at:]])


def without(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """The text without openings, the closings that follow them, and all between."""
    return replaced(text, opening, closing, lambda *_: "")


def between(opening: re.Match[str], closing: re.Match[str]) -> str:
    """The text between the two."""
    return opening.string[opening.end() : closing.start()]
