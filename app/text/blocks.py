"""Splits the Markdown of a passage into blocks that can be quoted: paragraphs, lists, tables and code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.core.types import Chunk
from app.text.sentences import quotable_sentences

CUT = "…"
Kind = Literal["paragraph", "list", "table", "code", "quote"]

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^#{1,6}\s")
_MARK = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)]|>)\s+")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+\S")
# possessive, because backtracking over the signs of a rule takes exponential time
_NOTHING = re.compile(r"(?:\s*+(?:!\[[^\]\n]*+\]\([^)\n]*+\)|\*{3,}+|-{3,}+|_{3,}+|<[^>\n]*+>))++\s*+$")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a passage; `section` is the index of its section."""

    text: str
    kind: Kind
    section: int

    @property
    def leads(self) -> bool:
        """Whether it introduces the next block."""
        return self.kind == "paragraph" and self.text.rstrip(" *_").endswith(":")


def blocks_of(chunk: Chunk) -> list[Block]:
    """The blocks of the chunk in order, without headings, images and rules."""
    offsets = [section.offset for section in chunk.sections[1:]]
    found: list[tuple[list[str], Kind, int]] = []
    for start, lines in _groups(chunk.text):
        text = "\n".join(lines).strip("\n").rstrip()
        section = bisect_right(offsets, start)
        if found and found[-1][1:] == ("list", section) and _goes_on(lines):
            found[-1][0].append(text)
        else:
            found.append(([text], _kind(lines), section))
    return [Block("\n\n".join(texts), kind, section) for texts, kind, section in found]


def _goes_on(lines: list[str]) -> bool:
    """Whether the lines belong to the list above them."""
    return bool(_ITEM.match(lines[0])) or lines[0].startswith(("  ", "\t"))


def _kind(lines: list[str]) -> Kind:
    if _FENCE.match(lines[0]) and not lines[0].startswith(" "):
        return "code"
    if lines[0].lstrip().startswith("|"):
        return "table"
    if lines[0].startswith(">"):
        return "quote"
    return "list" if any(_ITEM.match(line) for line in lines) else "paragraph"


def _groups(text: str) -> Iterator[tuple[int, list[str]]]:
    """Groups of consecutive lines, each with the offset of its first; a fenced block is one group."""
    lines: list[str] = []
    fence, start, at = "", 0, 0
    for line in text.splitlines(keepends=True):
        bare, mark = line.rstrip("\r\n"), _FENCE.match(line)
        closes = bool(fence and mark and mark[1].startswith(fence) and not line.strip(" `~\r\n"))
        alone = not fence and (not bare.strip() or _HEADING.match(bare) or _NOTHING.match(bare))
        if lines and (alone or (not fence and mark)):
            yield start, lines
            lines = []
        if not alone:
            start = start if lines else at
            lines.append(bare)
        if closes:
            yield start, lines
            lines, fence = [], ""
        elif not fence and mark:
            fence = mark[1]
        at += len(line)
    if lines:
        yield start, lines


@dataclass(frozen=True, slots=True)
class Units:
    """The parts of a block: sentences, rows or items; `head` is the header of a table, which is always kept."""

    texts: Sequence[str]
    joint: str
    head: str = ""
    rows: bool = False

    def plain(self, text: str) -> str:
        """A unit without list markers, cell borders and fenced code; code alone without its fences."""
        if self.rows:
            return " – ".join(cell.strip() for cell in text.strip().strip("|").split("|") if cell.strip())
        outside, code = _apart(text)
        return _MARK.sub("", outside.strip() or code)


def _apart(text: str) -> tuple[str, str]:
    """The text without fenced code, and the code without its fences."""
    outside, code, fence = list[str](), list[str](), ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        else:
            (code if fence else outside).append(line)
    return "\n".join(outside), "\n".join(code)


def units_of(block: Block, abbreviations: Collection[str] | None = None) -> Units:
    """The parts of the block; code and quotes have only one."""
    lines = block.text.splitlines()
    if block.kind == "paragraph":
        return Units(quotable_sentences(block.text, abbreviations), " ")
    if block.kind == "table" and len(lines) > 2:
        return Units(lines[2:], "\n", "\n".join(lines[:2]), rows=True)
    if block.kind == "list":
        return Units(_items(lines), "\n")
    return Units([block.text], "\n")


def _items(lines: Iterable[str]) -> list[str]:
    """The items of the outermost level, each with its further lines."""
    items: list[list[str]] = []
    for line in lines:
        if items and (line[:1].isspace() or not line.strip() or not _ITEM.match(line)):
            items[-1].append(line)
        else:
            items.append([line])
    return ["\n".join(item).rstrip() for item in items]


def shortened(units: Units, longest: int, weight: Callable[[str], float]) -> str:
    """The unit with the largest weight and the neighbours that fit; omissions are marked."""
    scores = [weight(text) for text in units.texts]
    first = last = max(range(len(scores)), key=lambda i: (scores[i], -i))
    joint = len(units.joint)
    room = longest - len(units.head) - len(units.texts[first]) - 2 * len(f"{CUT}\n\n")
    before, after = range(first - 1, -1, -1), range(first + 1, len(units.texts))
    # a text says first what it is about, and the rows above another one say nothing of it
    for neighbours in (after, before) if units.rows else (before, after):
        for near in neighbours:
            if len(units.texts[near]) + joint > room:
                break
            room -= len(units.texts[near]) + joint
            first, last = min(first, near), max(last, near)
    kept = units.joint.join(units.texts[first : last + 1])
    rest = last + 1 < len(units.texts)
    if units.joint == " ":
        return f"{f'{CUT} ' if first else ''}{kept}{f' {CUT}' if rest else ''}"
    above = f"{units.head}\n" if units.head else f"{CUT}\n\n" if first else ""
    below = f"\n\n{CUT}" if rest or (first and units.head) else ""
    return above + kept + below


def joined(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown again."""
    return "\n\n".join(block.text for block in blocks)
