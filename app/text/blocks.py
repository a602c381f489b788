"""Splits the Markdown of a passage into blocks that can be quoted: paragraphs, and whole lists, tables and code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from app.core.types import Chunk

CUT = "…"
Kind = Literal["paragraph", "list", "table", "code", "quote"]

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^#{1,6}\s")
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


def bounded(block: Block, longest: int) -> Block:
    """The block; a longer list, table or quote is cut after a line and marked."""
    if len(block.text) <= longest or block.kind not in {"list", "table", "quote"}:
        return block
    lines: list[str] = []
    length, in_code = 0, False
    for line in block.text.splitlines():
        length += len(line) + 1
        if length > longest and lines and not in_code:
            break
        lines.append(line)
        in_code ^= bool(_FENCE.match(line))
    return replace(block, text="\n".join([*lines, "", CUT]))


def joined(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown again."""
    return "\n\n".join(block.text for block in blocks)
