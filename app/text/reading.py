"""One reading of a text, be it a page, a passage, a question or an answer: its blocks, its rows, its words and their roots.

A row is what says one thing: a sentence, an item's sentence, a row of a table or a line of code. What is read is kept by the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from app.text.analysis import fold, root, words
from app.text.blocks import ITEM, blocks, code_lines, is_heading, sentences, unmarked

Kind = Literal["heading", "paragraph", "list", "table", "code", "quote"]

KEPT = 4000  # sections whose words are kept, about 6 KB each
CLOSING = ' *_"”“)'
"""What may stand behind the punctuation at the end of a sentence."""
_BEHIND_STOP = "\"'”’“»)]*_`"
LONGEST_LABEL = 60  # characters of the name of a tab or file above code
# possessive, because backtracking over the signs of a rule takes exponential time
_NOTHING = re.compile(r"(?:\s*+(?:!\[[^\]\n]*+\]\([^)\n]*+\)|\*{3,}+|-{3,}+|_{3,}+|<[^>\n]*+>))++\s*+$")
_SECTIONS = re.compile(r"\n(?=#{1,6} )")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a text, which begins at `start`; `section` is the index of its section."""

    text: str
    kind: Kind
    section: int
    start: int

    @property
    def leads(self) -> bool:
        """True if it introduces the next block: it ends with a colon, or has no full stop, as the label of a tab or file."""
        return self.is_label or (self.kind == "paragraph" and self.text.rstrip(" *_").endswith(":"))

    @property
    def is_numbered(self) -> bool:
        """True for a list of steps."""
        return self.kind == "list" and self.text.lstrip()[:1].isdecimal()

    @property
    def is_label(self) -> bool:
        """True for a short line without a full stop."""
        short = self.kind == "paragraph" and len(self.text) <= LONGEST_LABEL and "\n" not in self.text
        return (
            short
            and not self.text.rstrip(_BEHIND_STOP).endswith((".", "!", "?", "…"))
            and not self.text.rstrip(" *_").endswith(":")
        )

    @property
    def head(self) -> str:
        """The first line of a table, which names its columns; empty for other blocks."""
        return self.text.partition("\n")[0] if self.kind == "table" else ""


def read_blocks(text: str, offsets: Sequence[int] = ()) -> Iterator[Block]:
    """The blocks of a text in order, without images and rules. A list goes on behind blank lines, up to where a section begins, at one
    of the `offsets`.
    """
    waiting: Block | None = None
    for start, lines in _groups(text):
        section, end = bisect_right(offsets, start), start + len("\n".join(lines).rstrip())
        goes_on = ITEM.match(lines[0]) or lines[0].startswith(("  ", "\t"))  # the list above the lines
        if waiting and (waiting.kind, waiting.section) == ("list", section) and goes_on:
            waiting = Block(text[waiting.start : end], "list", section, waiting.start)
            continue
        if waiting:
            yield waiting
        waiting = Block(text[start:end], _kind(lines), section, start)
    if waiting:
        yield waiting


def _kind(lines: Sequence[str]) -> Kind:
    first = lines[0]
    if first.startswith(("```", "~~~")):
        return "code"
    if first.lstrip().startswith("|"):
        return "table"
    if first.startswith(">"):
        return "quote"
    if is_heading(first):
        return "heading"
    return "list" if any(map(ITEM.match, lines)) else "paragraph"


def _groups(text: str) -> Iterator[tuple[int, list[str]]]:
    """Groups of consecutive lines, each with the offset of its first; a fenced block is one group, and so is a heading."""
    at = 0
    for is_code, piece in blocks(text):
        lines, start = piece.splitlines() if is_code else list[str](), at
        for line in () if is_code else piece.splitlines(keepends=True):
            bare = line.rstrip("\r\n")
            heading = is_heading(bare)
            if heading or not bare.strip() or _NOTHING.match(bare):
                if lines:
                    yield start, lines
                if heading:
                    yield at, [bare]
                lines = []
            else:
                start = start if lines else at
                lines.append(bare)
            at += len(line)
        if lines:
            yield start, lines
        at += len(piece) * is_code


def parts(block: Block, *, nested: bool = False, shortest: int = 0) -> list[tuple[int, int]]:
    """The start and end of each sentence, item or row in the text of a block; code is one part. With `nested`, inner
    items are parts, too. Sentences have at least so many characters, with the next ones where they have fewer.
    """
    if block.kind in {"paragraph", "quote"}:
        return list(_sentences(block.text, shortest))
    lines, at, starts, fenced = block.text.splitlines(keepends=True), 0, list[int](), False
    least = min((len(line) - len(line.lstrip()) for line in lines if ITEM.match(line)), default=0)
    for number, line in enumerate(lines):
        fenced ^= block.kind == "list" and line.lstrip().startswith(("```", "~~~"))
        row = block.kind == "table" and (number > 1 or len(lines) < 3)
        item = block.kind == "list" and not fenced and ITEM.match(line)
        if row or (item and (nested or len(line) - len(line.lstrip()) <= least)):
            starts.append(at)
        at += len(line)
    starts = starts or [0]
    ends = [*starts[1:], len(block.text)]
    return [(start, start + len(block.text[start:end].rstrip())) for start, end in zip(starts, ends, strict=True)]


def _sentences(text: str, shortest: int) -> Iterator[tuple[int, int]]:
    """Sentences, none of which ends within a code span."""
    start = at = 0
    in_code = False
    for sentence in sentences(text):
        at += len(sentence)
        in_code ^= sentence.count("`") % 2 == 1
        if at == len(text) or (not in_code and at - start > shortest):
            yield start, start + len(text[start:at].rstrip())
            start = at


class Row(NamedTuple):
    """A sentence, an item's sentence, a row of a table or a line of code, on one line; `around` is what tells its unit: the head and
    the row of a table, or its block.
    """

    text: str
    kind: Kind
    around: str


def rows(text: str) -> Iterator[Row]:
    """The rows of a text. The head of a table and a bold line are headings."""
    for block in read_blocks(text):
        if block.kind == "code":
            yield from (Row(line, "code", block.text) for line in code_lines(block.text))
        elif block.kind == "heading" or (block.is_label and block.text.startswith("**")):
            yield Row(unmarked(block.text), "heading", block.text)
        else:
            places = parts(block, nested=True)
            if block.head:
                yield Row(block.head, "heading", block.text)
            elif before := block.text[: places[0][0]]:  # no blank line is between a list and what introduces it
                yield from rows(before)
            for start, end in places:
                yield from _rows_of(block, block.text[start:end])


def _rows_of(block: Block, part: str) -> Iterator[Row]:
    if block.kind == "table":
        yield Row(part, "table", f"{block.head}\n{part}")
        return
    for is_code, piece in blocks(part) if block.kind == "list" else ((False, part),):
        if is_code:
            yield from (Row(line, "code", block.text) for line in code_lines(piece))
            continue
        line = " ".join(map(unmarked, map(str.strip, piece.splitlines())))
        said = sentences(line) if block.kind == "list" else [line]
        yield from (Row(one.strip(), block.kind, block.text) for one in said if one.strip())


class Part:
    """A section of a text, read."""

    def __init__(self, text: str) -> None:
        self.text = text
        parts = text.casefold().split()
        self.small = " ".join(parts)
        distinct = set(parts)
        whole = set(filter(str.isalpha, distinct))  # most: a pattern over all of a passage takes twice the time
        self.stems = frozenset(map(root, whole.union(words(" ".join(distinct - whole)))))

    @cached_property
    def folded(self) -> str:
        """Its text in small letters without diacritics."""
        return fold(self.small)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Its rows in order."""
        return tuple(rows(self.text))


part_of = lru_cache(maxsize=KEPT)(Part)


class Reading:
    """A text, read: in small letters, and the stems of its words.

    Each answer has other passages, but of the same sections, so that these are kept, unless the text `returns` no more.
    """

    def __init__(self, text: str, *, returns: bool = True) -> None:
        read = part_of if returns else Part
        self.parts = [read(part) for part in _SECTIONS.split(text)]
        self.small = " ".join([part.small for part in self.parts])
        self.stems = frozenset[str]().union(*[part.stems for part in self.parts])
