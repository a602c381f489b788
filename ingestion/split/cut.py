"""Cuts a block that is too long for a chunk into (part, gap before it), none longer than the size."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from semantic_text_splitter import TextSplitter

from app.text.sentences import sentences

Parts = list[tuple[str, str]]

_FENCE = re.compile(r"^(?P<indent>[ \t>]*(?:[-*+][ \t]+|\d+[.)][ \t]+)*)(?P<fence>`{3,}|~{3,})")


def cut_prose(text: str, size: int, abbreviations: Collection[str] | None = None) -> Parts:
    """Sentences packed up to the size; a sentence that is longer is cut between words."""
    parts: Parts = []
    full, gap = "", ""
    for sentence in sentences(text, abbreviations):
        if full and len(full) + len(sentence.rstrip()) > size:
            parts.append((full.rstrip(), gap))
            gap, full = full[len(full.rstrip()) :], ""
        full += sentence
        if len(full.rstrip()) > size:
            cut = _words(size).chunks(full)
            parts.extend((part, gap if not number else " ") for number, part in enumerate(cut[:-1]))
            gap, full = " ", cut[-1]
    if full.strip():
        parts.append((full.rstrip(), gap))
    return parts


@lru_cache(maxsize=8)
def _words(size: int) -> TextSplitter:
    return TextSplitter(size, trim=True)


def cut_lines(lines: list[str], size: int) -> Parts:
    """Whole lines packed up to the size; a line that is longer is cut between words."""
    *packed, last = _packed(_short(lines, size), size) or [[]]
    parts = [("\n".join(full), "\n") for full in packed]
    return [*parts, ("\n".join(last), "\n")] if any(line.strip() for line in last) else parts


def _packed(lines: list[str], size: int) -> list[list[str]]:
    packed: list[list[str]] = []
    room = 0
    for line in lines:
        if not packed or len(line) > room:
            packed.append([])
            room = size
        packed[-1].append(line)
        room -= len(line) + 1
    return packed


def cut_code(lines: list[str], size: int) -> Parts:
    """A fenced block as several, each with the fences of the whole; cut at line ends, at blank lines if it can be."""
    opening = lines[0]
    match = _FENCE.match(opening)
    if match is None or len(opening) > size // 2:  # an info string that long would be most of every part
        return cut_lines(lines, size)
    inner = re.sub(r"[^\s>]", " ", match["indent"])
    closing = inner + match["fence"]
    closed = (
        len(lines) > 1
        and lines[-1].strip(" \t>") == lines[-1].strip(" \t>")[:1] * len(lines[-1].strip(" \t>"))
        and (lines[-1].strip(" \t>").startswith(match["fence"]))
    )
    body = lines[1:-1] if closed else lines[1:]
    room = max(80, size - len(opening) - len(closing) - 2)
    reopening = inner + opening[len(match["indent"]) :]
    parts: Parts = []
    for part, _ in cut_lines(body, room):
        parts.append((f"{opening if not parts else reopening}\n{part}\n{closing}", "\n\n"))
    return parts


def cut_table(lines: list[str], size: int) -> Parts:
    """A table as several, each with the header rows; rows are never cut, whatever their length."""
    header, rows = lines[:2], lines[2:]
    room = size - sum(map(len, header)) - 2
    if room < 0:  # repeated above each row, it would make a page many times as long
        return [("\n".join(full), "\n\n") for full in _packed(lines, size)]
    return [("\n".join([*header, *full]), "\n\n") for full in _packed(rows, room) or [[]]]


def _short(lines: list[str], size: int) -> list[str]:
    short: list[str] = []
    for line in lines:
        short.extend([line] if len(line) <= size else _words(size).chunks(line))
    return short
