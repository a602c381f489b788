"""A page's Markdown as a flat list of pieces: the smallest parts that a chunk may be made of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token

from app.text.sentences import sentences
from ingestion.split.cut import cut_code, cut_lines, cut_prose, cut_table

_ANCHOR = re.compile(r"(?:\{#([^{}\s]+)\}|\[#([^\[\]\s]+)\])(?=[ \t]*+#*+[ \t]*+$)")
_MARKUP = re.compile(r"[^\w\s.,:;?()'\"/+-]|_|  $")
_FENCE_LINE = re.compile(r"(?m)^[ \t>]*+(?:(?:[-*+]|\d++[.)])[ \t]++)*+(?:```+|~~~+)")
_INLINE = MarkdownIt("commonmark").enable("strikethrough")
_CONTAINERS = frozenset({"bullet_list", "ordered_list", "list_item", "blockquote"})

LONGEST_HEADING = 1000
"""Characters of a heading that are remembered: every chunk below it repeats them."""

# what it costs to end a chunk before a piece, as a share of a whole chunk's worth
BEFORE_HEADING = (0.0, 0.0, 0.02, 0.05, 0.08, 0.1, 0.1)
BEFORE_BLOCK, BEFORE_ITEM, BEFORE_CUT, STACKED, ANNOUNCED, NEVER = 0.25, 0.45, 0.35, 0.5, 0.8, 1e6


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # as markdown-it calls it
    """A table as one token. The parser's own rule makes three for each cell, also for those that a short row lacks."""
    found = table(state, start, end, silent=True)
    if silent or not found:
        return found
    around, state.parentType = state.parentType, "table"
    others = state.md.block.ruler.getRules("blockquote")
    last = start + 2
    while last < end and not (_is_after(state, last) or any(rule(state, last, end, True) for rule in others)):
        last += 1
    state.push("table", "table", 0).map = [start, last]
    state.parentType, state.line = around, last
    return True


def _is_after(state: StateBlock, line: int) -> bool:
    return state.sCount[line] < state.blkIndent or state.isEmpty(line) or state.is_code_block(line)


_BLOCKS = MarkdownIt("commonmark").enable("table").disable("inline")
_BLOCKS.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading without its markup; `anchor` is empty where the text has none."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a page that is never cut. `gap` stands between it and the piece before it in the same chunk."""

    text: str
    gap: str
    cost: float
    heading: Heading | None = None


@dataclass(slots=True)
class _Block:
    """A block of Markdown; `content` is that of a heading. Only containers have children: nothing else is cut by them."""

    type: str
    tag: str
    markup: str
    start: int
    end: int
    content: str = ""
    children: list[_Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Room:
    """How long a piece may be, in characters, and what ends no sentence."""

    size: int
    abbreviations: Collection[str] | None


def pieces(
    markdown: str, size: int, *, sentences_apart: bool = False, abbreviations: Collection[str] | None = None
) -> list[Piece]:
    """The whole text in order; no piece is longer than `size`, except a single row of a table.

    A paragraph that fits is one piece, or with `sentences_apart` as many as it has sentences; an abbreviation ends none.
    """
    lines = markdown.split("\n")
    made: list[Piece] = []
    headed = (
        0  # what the headings before take of a chunk, so that the first part of a block that is cut stands with them
    )
    for node, start, end in _top_level(lines):
        gap = "\n\n" if not start or not lines[start - 1].strip() else "\n"
        room = _Room(max(size // 2, size - headed), abbreviations)
        if node is not None and node.type == "heading":
            made.append(_heading(node, lines[start:end]))
            headed += len(made[-1].text) + len(made[-1].gap)
            continue
        headed = 0
        if sentences_apart and node is not None and node.type == "paragraph":
            made.extend(_sentences("\n".join(lines[start:end]), gap, room))
        else:
            made.extend(_cut(node, lines, start, end, gap, room))
    return _glued(made)


def headings_of(markdown: str) -> list[Heading]:
    """The headings of the whole text in order, without cutting it."""
    lines = markdown.split("\n")
    found = (
        _heading(node, lines[start:end]) for node, start, end in _top_level(lines) if node and node.type == "heading"
    )
    return [piece.heading for piece in found if piece.heading is not None]


def _sentences(paragraph: str, gap: str, room: _Room) -> Iterator[Piece]:
    cost = BEFORE_BLOCK
    for sentence in sentences(paragraph, room.abbreviations):
        text = sentence.rstrip()
        for number, (part, _) in enumerate(cut_prose(text, room.size, room.abbreviations)):
            yield Piece(part, " " if number else gap, cost)
            cost = BEFORE_CUT
        gap = sentence[len(text) :]


def _top_level(lines: list[str]) -> Iterator[tuple[_Block | None, int, int]]:
    """(block, first line, line after) over all non-blank lines; lines that make no block come as None."""
    at = 0
    for node in _blocks("\n".join(lines)):
        start, end = node.start, node.end
        yield from _loose(lines, at, start)
        end = _without_blank_end(lines, start, end)
        yield node, start, end
        at = end
    yield from _loose(lines, at, len(lines))


def _blocks(markdown: str) -> list[_Block]:
    """The blocks of the text as a tree."""
    root = _Block("root", "", "", 0, 0)
    open_ = [root]
    for token in _BLOCKS.parse(markdown):
        parent = open_[-1]
        if token.nesting < 0:
            open_.pop()
        elif token.type == "inline":
            if parent.type == "heading":
                parent.content = token.content
        else:
            start, end = token.map or (0, 0)
            block = _Block(token.type.removesuffix("_open"), token.tag, token.markup, start, end)
            if parent is root or (parent.type in _CONTAINERS and token.map):
                parent.children.append(block)
            if token.nesting > 0:
                open_.append(block)
    return root.children


def _loose(lines: list[str], start: int, end: int) -> Iterator[tuple[None, int, int]]:
    """Runs of non-blank lines that the parser keeps to itself: link definitions."""
    at = start
    while at < end:
        if not lines[at].strip():
            at += 1
            continue
        last = at
        while last < end and lines[last].strip():
            last += 1
        yield None, at, last
        at = last


def _without_blank_end(lines: list[str], start: int, end: int) -> int:
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _heading(node: _Block, lines: list[str]) -> Piece:
    level = int(node.tag[1:])
    text = "\n".join(lines[:-1] if node.markup in "=-" and len(lines) > 1 else lines)
    anchor = _ANCHOR.search(text)
    content = _ANCHOR.sub("", node.content).rstrip(" \t")
    plain = " ".join(_words(content).split())[:LONGEST_HEADING]
    shown = f"{'#' * level} {' '.join(content.split())}"
    heading = Heading(level, plain, next((g for g in anchor.groups() if g), "") if anchor else "")
    return Piece(shown, "\n\n", BEFORE_HEADING[level], heading)


def _words(content: str) -> str:
    if len(content) > LONGEST_HEADING:  # what a parser would take time for is no heading but a page in one line
        return content
    if not _MARKUP.search(content):
        return content
    return _plain(_INLINE.parseInline(content)[0].children or [])


def _plain(tokens: list[Token]) -> str:
    parts: list[str] = []
    for token in tokens:
        if token.type in ("text", "code_inline"):
            parts.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type == "image":
            parts.append(token.content)
    return "".join(parts)


def _cut(node: _Block | None, lines: list[str], start: int, end: int, gap: str, room: _Room) -> Iterator[Piece]:
    """The block as one piece if it fits, else cut where its kind allows."""
    text, size = "\n".join(lines[start:end]), room.size
    kind = node.type if node is not None else "loose"
    if len(text) <= size and kind not in ("bullet_list", "ordered_list"):
        yield Piece(text, gap, BEFORE_BLOCK if gap == "\n\n" else BEFORE_ITEM)
        return
    if node is not None and kind in _CONTAINERS and node.children:
        yield from _children(node, lines, start, end, gap, room)
        return
    if kind == "fence":
        parts = cut_code(lines[start:end], size)
    elif kind == "table" or all(line.lstrip().startswith("|") for line in lines[start:end]):
        parts = cut_table(lines[start:end], size)
    elif kind in ("code_block", "html_block"):
        parts = cut_lines(lines[start:end], size)
    else:
        parts = cut_prose(text, size, room.abbreviations)
    for number, (part, joint) in enumerate(parts):
        yield Piece(part, joint if number else gap, BEFORE_CUT if number else BEFORE_BLOCK)


def _children(node: _Block, lines: list[str], start: int, end: int, gap: str, room: _Room) -> Iterator[Piece]:
    """A list as its items, an item too long as its blocks; markers and indentation stay as written."""
    starts = [child.start for child in node.children] or [start]
    bounds = [start, *starts[1:], end]
    for number, child in enumerate(node.children):
        first, last = bounds[number], _without_blank_end(lines, bounds[number], bounds[number + 1])
        between = gap if not number else "\n\n" if not lines[first - 1].strip() else "\n"
        cost = None if not number else BEFORE_ITEM
        for piece in _cut(child, lines, first, last, between, room):
            yield piece if cost is None else Piece(piece.text, piece.gap, cost)
            cost = None


def _glued(made: list[Piece]) -> list[Piece]:
    """A heading, a line that announces what follows, and code that its author indented wrongly don't end a chunk."""
    result = list(made)
    code = False
    for number in range(1, len(result)):
        before, piece = result[number - 1], result[number]
        # a fence that Markdown takes for none, as its block isn't indented like its list item, still opens code to a reader
        code = piece.heading is None and code != bool(len(_FENCE_LINE.findall(before.text)) % 2)
        if piece.heading is None and (before.heading is not None or code):
            result[number] = replace(piece, cost=NEVER)
        elif piece.heading is not None and before.heading is not None and piece.heading.level > before.heading.level:
            result[number] = replace(piece, cost=STACKED)
        elif piece.heading is None and piece.cost < ANNOUNCED and _continues(before.text, piece.text):
            result[number] = replace(piece, cost=ANNOUNCED)
    return result


def _continues(before: str, text: str) -> bool:
    """True when the text reads on from what stands before it."""
    return before.endswith(":") or text[:1].islower()
