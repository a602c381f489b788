"""How far a Markdown link goes, in a text of which the end may not have come yet."""

from __future__ import annotations

import re

WORDS = 80  # between brackets: as long as a bracket that nothing closes is held back
TARGET = 2000
TITLE = 80
_BRACKET = re.compile(r"\\.|[\[\]\n]")
_SPACE = re.compile(r"[ \t]*\n?[ \t]*")
_DESTINATION_END = re.compile(r"\\.|[\s()]")
_CLOSING = {'"': '"', "'": "'", "(": ")"}


class More(Exception):
    """Only more text can tell."""


def more(*, final: bool) -> None:
    """Raises `More` unless the text is at its end, where what is there has to do."""
    if not final:
        raise More


def closing(text: str, opening: int, *, final: bool) -> int:
    """Where the bracket is closed that opens here; 0 where that isn't soon, and on the same line."""
    depth, at, limit = 0, opening, opening + WORDS
    while (found := _BRACKET.search(text, at)) and found.start() <= limit and found[0] != "\n":
        at = found.end()
        depth += (found[0] == "[") - (found[0] == "]")
        if not depth:
            return found.start()
        if found[0] == "]" and at == len(text):
            more(final=final)
        if found[0] == "]" and text[at : at + 1] == "(" and (inner := target_of(text, at, final=final)):
            limit += inner[1] - at  # of a picture within a link only the words count
            at = inner[1]
    if found is None and len(text) <= limit:
        more(final=final)
    return 0


def target_of(text: str, opening: int, *, final: bool) -> tuple[str, int] | None:
    """Where `(target "title")` leads and ends; None where the parentheses are something else."""
    start = space_end(text, opening + 1, final=final)
    if text[start : start + 1] == "<":
        end = text.find(">", start, start + TARGET) + 1
        if not end and "\n" not in text[start:] and len(text) < start + TARGET:
            more(final=final)
        if not end or "\n" in text[start:end]:
            return None
    else:
        end = destination_end(text, start, final=final)
    at = space_end(text, end, final=final)
    if at > end > start and (closing := _CLOSING.get(text[at : at + 1])):
        title = text.find(closing, at + 1, at + TITLE)
        if title < 0:
            if len(text) < at + TITLE:
                more(final=final)
            return None
        at = space_end(text, title + 1, final=final)
    return (text[start:end].strip("<>"), at + 1) if text[at : at + 1] == ")" else None


def space_end(text: str, at: int, *, final: bool) -> int:
    """Where blanks from here end, with one line end at most."""
    found = _SPACE.match(text, at)
    assert found is not None
    if found.end() == len(text):
        more(final=final)
    return found.end()


def destination_end(text: str, start: int, *, final: bool) -> int:
    """Where an address ends: before a blank, or a parenthesis that it didn't open."""
    depth, at = 0, start
    while (found := _DESTINATION_END.search(text, at)) and found.start() - start < TARGET:
        depth += (found[0] == "(") - (found[0] == ")")
        if depth < 0 or found[0].isspace():
            return found.start()
        at = found.end()
    if len(text) - start < TARGET:
        more(final=final)
    return min(len(text), start + TARGET)
