"""Edits of a Markdown text: parts of it that are removed, replaced or escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from app.citing.markdown import Indented, Reading

_BACKTICKS = re.compile(r"`+")
_BRACKET = re.compile(r"[\[\]]")
_BLACK = re.compile(r"\S")
_REST = re.compile(r"[ \t]*\S")  # of a line


class Edit(NamedTuple):
    """Other text for a part of the source."""

    start: int
    end: int
    text: str = ""


def applied(text: str, edits: list[Edit]) -> str:
    """The text with all edits made; an edit within a removed part has no effect."""
    parts, at = [], 0
    for edit in sorted(set(edits)):
        if edit.start < at:
            continue  # within what another one took out
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def with_marks(text: str, reading: Reading, edits: Iterable[Edit]) -> list[Edit]:
    """The edits in order; an ellipsis replaces a removed part if the rest of its line could begin another block, or
    if a marker of a list would stand alone.
    """
    kept: list[Edit] = []
    for edit in sorted(set(edits), reverse=True):
        bares = not edit.text and edit.start in reading.line_starts
        marked = bares and (_may_begin(text, edit.end, kept) or _empties_item(text, edit))
        kept.append(edit._replace(text="…") if marked else edit)
    return kept[::-1]


def _may_begin(text: str, at: int, behind: list[Edit]) -> bool:
    """Whether what is left from here may begin a block."""
    if behind and behind[-1].start == at and not behind[-1].text:
        at = behind[-1].end
    return not text[at : at + 1].isalpha() and bool(_BLACK.search(text, at))


def _empties_item(text: str, edit: Edit) -> bool:
    """Whether only a marker would be left of the line: an empty item can't interrupt a paragraph."""
    begins = text.rfind("\n", 0, edit.start) + 1
    return bool(_BLACK.search(text, begins, edit.start)) and not _REST.match(text, edit.end)


def escaping(signs: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Edit]:
    """A backslash before each of the signs in this part of the text."""
    for found in signs.finditer(text, start, end):
        yield Edit(found.start(), found.start(), "\\")


def escaping_open_brackets(text: str, start: int, end: int) -> Iterator[Edit]:
    """A backslash before each bracket that nothing closes: some clients take code behind it for its end."""
    open_at: list[int] = []
    for found in _BRACKET.finditer(text, start, end):
        if found[0] == "[":
            open_at.append(found.start())
        elif open_at:
            open_at.pop()
    yield from (Edit(at, at, "\\") for at in open_at)


def fenced(block: Indented) -> Edit:
    """The indented code as a fenced block, which all clients read as code."""
    fence = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(block.code))])
    lines = [fence, *block.code.rstrip("\n").split("\n"), fence]
    indent = " " * block.indent
    return Edit(block.start, block.end, "".join(f"{indent}{line}".rstrip() + "\n" for line in lines))
