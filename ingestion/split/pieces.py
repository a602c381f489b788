"""Markdown -> pieces that are never cut: blocks, items of lists, rows, sentences; what is too long for a chunk is cut."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from semantic_text_splitter import TextSplitter

from app.text.blocks import code_lines, sentences
from ingestion.convert.document import KINDS
from ingestion.convert.markdown.structure import CONTAINERS, Block, Heading, heading_of, top_level, without_blank_end

_FENCE_LINE = re.compile(r"(?m)^[ \t>]*+(?:(?:[-*+]|\d++[.)])[ \t]++)*+(?:```+|~~~+)")

_LABEL = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d++[.)])[ \t]++)*+\*\*\S.*\*\*:?$")
"""A bold line: a term, the label of a tab, the title of an admonition or of code."""

_ADMONITION = re.compile(rf"\*\*(?:{'|'.join(sorted(KINDS))})(?:: [^*\n]+)?\*\*$", re.IGNORECASE)

# the cost of ending a chunk before a piece; a missing chunk would cost 1
BEFORE_HEADING = (0.0, 0.0, 0.02, 0.05, 0.08, 0.1, 0.1)
BEFORE_BLOCK, BEFORE_ITEM, BEFORE_CUT, STACKED, ANNOUNCED, NEVER = 0.25, 0.45, 0.35, 0.5, 0.8, 1e6
BEFORE_SYMBOL = -2.0
"""Below the cost of any short chunk: packed with others, a symbol or an operation would be found by their words too."""
IN_ADMONITION = (0.8, 0.6, 0.4)
"""Before the blocks after its first: how many it has isn't known, but most have few."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a page that is never cut. `gap` stands between it and the piece before it in the same chunk.

    `lines` are those of the page (first, and the one after) of the block, or the item of a list, that it is of. `indent` are
    the spaces before it because it is inside a list.
    """

    text: str
    gap: str
    cost: float
    heading: Heading | None = None
    lines: tuple[int, int] = (0, 0)
    indent: int = 0


@dataclass(frozen=True, slots=True)
class _Limits:
    """The longest piece in characters, and the abbreviations that end no sentence."""

    size: int
    abbreviations: Collection[str] | None


def pieces(
    markdown: str, size: int, *, sentences_apart: bool = False, abbreviations: Collection[str] | None = None
) -> list[Piece]:
    """The whole text in order; no piece is longer than `size`, except a single row of a table.

    A paragraph that fits is one piece, or with `sentences_apart` as many as it has sentences; an abbreviation ends none.
    """
    lines = markdown.split("\n")
    parts: list[Piece] = []
    in_symbol = False
    headed = 0  # characters of the headings just before: the first part of a block that is cut stays with them
    for block, start, end in top_level(lines):
        gap = "\n\n" if not start or not lines[start - 1].strip() else "\n"
        limits = _Limits(max(size // 2, size - headed), abbreviations)
        if block is not None and block.type == "heading":
            heading, text = heading_of(block, lines[start:end])
            after_symbol, in_symbol = in_symbol, block.content.startswith("`")
            cost = BEFORE_SYMBOL if in_symbol or after_symbol else BEFORE_HEADING[heading.level]
            parts.append(Piece(text, "\n\n", cost, heading, (start, end)))
            headed += len(text) + 2
            continue
        headed = headed + len(lines[start]) + 2 if _is_label(lines, start, end) else 0
        if sentences_apart and block is not None and block.type == "paragraph":
            sentences = _sentences("\n".join(lines[start:end]), gap, limits)
            parts.extend(replace(piece, lines=(start, end)) for piece in sentences)
        else:
            parts.extend(_cut(block, lines, start, end, gap, limits))
    return _glued(parts)


def _sentences(paragraph: str, gap: str, limits: _Limits) -> Iterator[Piece]:
    cost = BEFORE_BLOCK
    for sentence in sentences(paragraph, limits.abbreviations):
        text = sentence.rstrip()
        for number, (part, _) in enumerate(cut_prose(text, limits.size, limits.abbreviations)):
            yield Piece(part, " " if number else gap, cost)
            cost = BEFORE_CUT
        gap = sentence[len(text) :]


def _cut(block: Block | None, lines: list[str], start: int, end: int, gap: str, limits: _Limits) -> Iterator[Piece]:
    """The block as one piece if it fits, else cut where its kind allows."""
    text, size = "\n".join(lines[start:end]), limits.size
    kind = block.type if block is not None else "loose"
    if len(text) <= size and kind not in ("bullet_list", "ordered_list"):
        yield Piece(text, gap, BEFORE_BLOCK if gap == "\n\n" else BEFORE_ITEM, lines=(start, end))
        return
    if block is not None and kind in CONTAINERS and block.children:
        yield from _children(block, lines, start, end, gap, limits)
        return
    if kind == "fence":
        parts = cut_code(lines[start:end], size)
    elif kind == "table" or all(line.lstrip().startswith("|") for line in lines[start:end]):
        parts = cut_table(lines[start:end], size)
    elif kind in ("code_block", "html_block"):
        parts = cut_lines(lines[start:end], size)
    else:
        parts = cut_prose(text, size, limits.abbreviations)
    for number, (part, joint) in enumerate(parts):
        cost = BEFORE_CUT if number else BEFORE_BLOCK
        yield Piece(part, joint if number else gap, cost, lines=(start, end))


def _children(block: Block, lines: list[str], start: int, end: int, gap: str, limits: _Limits) -> Iterator[Piece]:
    """A list as its items, an item too long as its blocks; markers and indentation stay as written."""
    starts = [child.start for child in block.children] or [start]
    bounds = [start, *starts[1:], end]
    labelled = 0
    for number, child in enumerate(block.children):
        room = replace(limits, size=max(limits.size // 2, limits.size - labelled))
        first, last = bounds[number], without_blank_end(lines, bounds[number], bounds[number + 1])
        between = gap if not number else "\n\n" if not lines[first - 1].strip() else "\n"
        cost = None if not number else BEFORE_ITEM
        for piece in _cut(child, lines, first, last, between, room):
            indent = 0 if child.type == "code_block" else len(piece.text) - len(piece.text.lstrip(" "))
            yield replace(piece, cost=piece.cost if cost is None else cost, indent=indent)
            cost = None
        labelled = len(lines[first]) + 2 if _is_label(lines, first, last) else 0


def opens_fence(text: str) -> bool:
    """True if the text has a fence that none in it closes, or only closes one."""
    return ("```" in text or "~~~" in text) and len(_FENCE_LINE.findall(text)) % 2 == 1


def _is_label(lines: list[str], start: int, end: int) -> bool:
    return end - start == 1 and _LABEL.match(lines[start]) is not None


def _glued(made: list[Piece]) -> list[Piece]:
    """Raise the cost of ending a chunk with a heading or a label, with a line that introduces the next one, or in code."""
    result = list(made)
    code = False
    noted = len(IN_ADMONITION)  # blocks since the title of an admonition and its first block
    for number in range(1, len(result)):
        before, piece = result[number - 1], result[number]
        noted = -1 if _ADMONITION.match(before.text) else len(IN_ADMONITION) if piece.heading is not None else noted + 1
        # a fence with the wrong indentation is no fence to the parser, but its author meant code
        code = piece.heading is None and code != opens_fence(before.text)
        if piece.heading is None and (
            before.heading is not None or code or _LABEL.match(before.text.rpartition("\n")[2])
        ):
            result[number] = replace(piece, cost=NEVER)
        elif piece.heading is not None and before.heading is not None and piece.heading.level > before.heading.level:
            result[number] = replace(piece, cost=STACKED)
        elif (
            piece.heading is None and piece.cost < ANNOUNCED and (before.text.endswith(":") or piece.text[:1].islower())
        ):
            result[number] = replace(piece, cost=ANNOUNCED)
        elif piece.heading is None and 0 <= noted < len(IN_ADMONITION) and not _LABEL.match(piece.text):
            result[number] = replace(piece, cost=max(piece.cost, IN_ADMONITION[noted]))
    return result


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
            cut = _between_words(full, size)
            parts.extend((part, gap if not number else " ") for number, part in enumerate(cut[:-1]))
            gap, full = " ", cut[-1]
    if full.strip():
        parts.append((full.rstrip(), gap))
    return parts


STRETCH = 20
"""The library takes quadratic time for a long text without an end of a word, so that a text is given to it in stretches of so many parts."""


def _between_words(text: str, size: int) -> list[str]:
    """The text cut between words into parts of at most the size; a word that is longer is cut, too."""
    parts, start, most = list[str](), 0, STRETCH * size
    while start < len(text):
        end = min(start + most, len(text))
        if end < len(text) and (space := text.rfind(" ", start + 1, end)) > 0:
            end = space
        parts += _words(size).chunks(text[start:end])
        start = end
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
    body = code_lines("\n".join(lines))
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
        short.extend([line] if len(line) <= size else _between_words(line, size))
    return short
