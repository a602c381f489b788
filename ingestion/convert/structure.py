"""The block structure of Markdown, as CommonMark defines it, and the headings in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token

LONGEST_HEADING = 1000
"""Characters of a heading that are kept: every chunk below it repeats them."""

CONTAINERS = frozenset({"bullet_list", "ordered_list", "list_item", "blockquote"})

_ANCHOR = re.compile(r"(?:\{#([^{}\s]+)\}|\[#([^\[\]\s]+)\])(?=[ \t]*+#*+[ \t]*+$)")
_MARKUP = re.compile(r"[^\w\s.,:;?()'\"/+-]|_|  $")
_INLINE = MarkdownIt("commonmark").enable("strikethrough")


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


MOST_NESTED = 100
"""Levels of blocks, two for each list; of a block further inside, the parser takes the rest of the page for its text. The
nested properties of an API's reference have more than the 20 of CommonMark's preset.
"""

_BLOCKS = MarkdownIt("commonmark", {"maxNesting": MOST_NESTED}).enable("table").disable("inline")
_BLOCKS.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading without its markup; `anchor` is empty if the text has none."""

    level: int
    text: str
    anchor: str


@dataclass(slots=True)
class Block:
    """A block of Markdown; `content` is that of a heading. Only containers have children: nothing else is cut by them."""

    type: str
    tag: str
    markup: str
    start: int
    end: int
    content: str = ""
    children: list[Block] = field(default_factory=list)


def headings_in(markdown: str) -> list[Heading]:
    """The headings of the whole text in order, without cutting it."""
    lines = markdown.split("\n")
    return [
        heading_of(block, lines[start:end])[0]
        for block, start, end in top_level(lines)
        if block is not None and block.type == "heading"
    ]


def top_level(lines: list[str]) -> Iterator[tuple[Block | None, int, int]]:
    """(block, first line, line after) over all non-blank lines; lines that make no block come as None."""
    at = 0
    for block in _blocks("\n".join(lines)):
        start, end = block.start, block.end
        yield from _loose(lines, at, start)
        end = without_blank_end(lines, start, end)
        yield block, start, end
        at = end
    yield from _loose(lines, at, len(lines))


def _blocks(markdown: str) -> list[Block]:
    """The blocks of the text as a tree."""
    root = Block("root", "", "", 0, 0)
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
            block = Block(token.type.removesuffix("_open"), token.tag, token.markup, start, end)
            if parent is root or (parent.type in CONTAINERS and token.map):
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


def without_blank_end(lines: list[str], start: int, end: int) -> int:
    """The end of these lines without the blank ones at their end."""
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def heading_of(block: Block, lines: list[str]) -> tuple[Heading, str]:
    """The heading in these lines, and the line without its anchor."""
    level = int(block.tag[1:])
    text = "\n".join(lines[:-1] if block.markup in "=-" and len(lines) > 1 else lines)
    anchor = _ANCHOR.search(text)
    content = _ANCHOR.sub("", block.content).rstrip(" \t")
    plain = " ".join(_words(content).split())[:LONGEST_HEADING]
    shown = f"{'#' * level} {' '.join(content.split())}"
    return Heading(level, plain, next((g for g in anchor.groups() if g), "") if anchor else ""), shown


def _words(content: str) -> str:
    if len(content) > LONGEST_HEADING:  # too long for a heading: parsing a page in one line would be slow
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
