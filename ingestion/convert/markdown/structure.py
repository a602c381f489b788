"""The block structure of Markdown, as CommonMark defines it, its headings, and their ids: those that headings
link to, and those that the rules of generators make of their words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from app.text.blocks import outside_fences, outside_spans

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

    Rule = Callable[[StateBlock, int, int, bool], bool]

LONGEST_HEADING = 1000
"""Characters of a heading that are kept: every chunk below it repeats them."""

CONTAINERS = frozenset({"bullet_list", "ordered_list", "list_item", "blockquote"})

_ANCHOR = re.compile(r"(?:\{#([^{}\s]+)\}|\[#([^\[\]\s]+)\])(?=[ \t]*+#*+[ \t]*+$)")
_MARKUP = re.compile(r"[^\w\s.,:;?()'\"/+-]|_|  $")


def _table(rule: Rule, state: StateBlock, start: int, end: int, silent: bool) -> bool:  # as markdown-it calls it
    """A table as one token. The parser's own `rule` makes three for each cell, also for those that a short row lacks."""
    is_table = rule(state, start, end, True)
    if silent or not is_table:
        return is_table
    around, state.parentType = state.parentType, "table"
    others = state.md.block.ruler.getRules("blockquote")
    last = start + 2
    while last < end and not (_is_after(state, last) or any(other(state, last, end, True) for other in others)):
        last += 1
    state.push("table", "table", 0).map = [start, last]
    state.parentType, state.line = around, last
    return True


def _paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: ARG001  # as markdown-it calls it
    """A paragraph of lines that each begin with a letter, as most do: no other rule needs to look at it."""
    line = start
    while line < state.lineMax and not state.isEmpty(line):
        if not state.src[state.bMarks[line] + state.tShift[line]].isalpha():
            return False
        line += 1
    if state.is_code_block(start):
        return False
    state.line = line
    state.push("paragraph", "p", 0).map = [start, line]
    return True


def _is_after(state: StateBlock, line: int) -> bool:
    return state.sCount[line] < state.blkIndent or state.isEmpty(line) or state.is_code_block(line)


MOST_NESTED = 100
"""Levels of blocks, two for each list; of a block further inside, the parser takes the rest of the page for its text. The
nested properties of an API's reference have more than the 20 of CommonMark's preset.
"""


@cache
def _parser(*, inline: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import table

    if inline:
        return MarkdownIt("commonmark").enable("strikethrough")
    parser = MarkdownIt("commonmark", {"maxNesting": MOST_NESTED}).enable("table").disable("inline")
    parser.block.ruler.at("table", partial(_table, table), {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("table", "letters", _paragraph)
    return parser


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
    return [heading for heading, _ in _headings(markdown.split("\n"))]


def _headings(lines: list[str]) -> Iterator[tuple[Heading, int]]:
    """Each heading with its first line."""
    for block, start, end in top_level(lines):
        if block is not None and block.type == "heading":
            yield heading_of(block, lines[start:end])[0], start


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


@lru_cache(maxsize=8)  # a page is cut, then made plain text
def _blocks(markdown: str) -> list[Block]:
    """The blocks of the text as a tree, which nobody changes."""
    root = Block("root", "", "", 0, 0)
    open_ = [root]
    for token in _parser(inline=False).parse(markdown):
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


@lru_cache(maxsize=500)  # as `_blocks`
def _words(content: str) -> str:
    if len(content) > LONGEST_HEADING:  # too long for a heading: parsing a page in one line would be slow
        return content
    if not _MARKUP.search(content):
        return content
    return _plain(_parser(inline=True).parseInline(content)[0].children or [])


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


AnchorMode = Literal["auto", "github", "mkdocs", "none"]
Slugs = Callable[[Sequence[str]], list[str]]

_MOST_DIGITS = 1000
_HEADING = re.compile(r"(?P<marks>#{1,6})[ \t]++(?P<text>\S.*+)$")
_ID_AT_END = re.compile(r"(?:\{#([^{}\s]+)\}|\[#([^\[\]\s]+)\])$")
_BLANK = "\u00a0\u200b\u2060\ufeff"  # characters that make a link which nobody sees
_SELF_LINK = re.compile(r"(?m)^(?P<heading>#{1,6}[ \t]++\S.*)\n\n\[[^\[\]\n]*+\]\(#(?P<anchor>[^()\s]++)\)[ \t]*+$")
_LINK_IN_HEADING = re.compile(
    rf"(?m)^(?P<heading>#{{1,6}}[ \t]++\S[^\n]*?)\[[{_BLANK}]*+\]\(#(?P<anchor>[^()\s]++)\)[ \t]*+$"
)
_EMPTY_LINK = re.compile(rf"(?<!!)\[[{_BLANK}]*+\]\(#[^()\s]*+\)")


def with_linked_anchors(markdown: str) -> str:
    """The Markdown with the anchors that some generators write as a link in each heading, or in a line of its own below it.

    Links without a text that lead into the page are left out.
    """
    if "](#" not in markdown:
        return markdown
    return outside_fences(markdown, lambda prose: outside_spans(prose, _without_self_links))


def _without_self_links(prose: str) -> str:
    prose = _LINK_IN_HEADING.sub(_anchor_of_link, prose)
    return _EMPTY_LINK.sub("", _SELF_LINK.sub(_anchor_of_link, prose))


def _anchor_of_link(match: re.Match[str]) -> str:
    heading = match["heading"].rstrip(" \t")
    return heading if _ID_AT_END.search(heading) else f"{heading} {{#{match['anchor']}}}"


def with_anchors(markdown: str, mode: AnchorMode) -> str:
    """The Markdown with ` {#id}` on the headings that have none, by the rule of `mode`; with `auto`, where all rules agree."""
    lines = markdown.split("\n")
    headings = list(_headings(lines)) if mode != "none" else []
    if all(heading.anchor for heading, _ in headings):
        return markdown
    ids = _ids([heading for heading, _ in headings], mode)
    for (heading, line), id_ in zip(headings, ids, strict=True):
        if id_ and not heading.anchor and (atx := _HEADING.match(lines[line])):
            lines[line] = f"{atx['marks']} {_open(atx['text'])} {{#{id_}}}"
    return "\n".join(lines)


def _ids(headings: Sequence[Heading], mode: AnchorMode) -> list[str]:
    """An id for each heading, empty where it isn't certain."""
    if mode != "auto":
        return _by_rule(headings, RULES[mode], titled=True)
    # many themes put the title elsewhere: then its words don't count as used
    ids_by_rule = [_by_rule(headings, rule, titled=titled) for rule in RULES.values() for titled in (True, False)]
    return [
        slugs[0] if heading.level > 1 and len(set(slugs)) == 1 else ""
        for heading, slugs in zip(headings, zip(*ids_by_rule, strict=True), strict=True)
    ]


def _by_rule(headings: Sequence[Heading], rule: Slugs, *, titled: bool) -> list[str]:
    """Ids of the headings, except of those with ids of their own and, unless `titled`, of the title."""
    slugs = [heading.anchor for heading in headings]
    unnamed = [at for at, heading in enumerate(headings) if not heading.anchor and (titled or heading.level > 1)]
    for at, slug in zip(unnamed, rule([headings[at].text for at in unnamed]), strict=True):
        slugs[at] = slug
    return slugs


def _open(text: str) -> str:
    """The heading without the number signs that may close it."""
    text = text.rstrip(" \t")
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) else text


def github(headings: Sequence[str]) -> list[str]:
    """As github-slugger does (GitHub, Docusaurus, Fumadocs): letters with diacritics stay, repeats get -1, -2."""
    seen: dict[str, int] = {}
    slugs: list[str] = []
    for heading in headings:
        plain = slug = "".join(c for c in heading.lower() if c in " -" or _is_word(c)).replace(" ", "-")
        while slug in seen:
            seen[plain] += 1
            slug = f"{plain}-{seen[plain]}"
        seen[slug] = 0
        slugs.append(slug)
    return slugs


def mkdocs(headings: Sequence[str]) -> list[str]:
    """As Python-Markdown's toc does (MkDocs): diacritics are taken off, repeats get _1, _2."""
    slugs: list[str] = []
    after: dict[str, str] = {}  # the next candidate for each used slug
    for heading in headings:
        text = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode("ascii")
        text = re.sub(r"[^\w\s-]", "", text).strip().lower()
        slug = re.sub(r"[-\s]+", "-", text)
        first = slug = slug or "_1"
        while slug in after:
            slug = after[slug] if after[slug] != slug else _next(slug)
        after[first] = after[slug] = slug
        slugs.append(slug)
    return slugs


def _next(slug: str) -> str:
    name, _, number = slug.rpartition("_")
    counted = name + number != slug and number.isdecimal() and len(number) < _MOST_DIGITS
    return f"{name}_{int(number) + 1}" if counted else f"{slug}_1"


def _is_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LMN" or category == "Pc"


RULES: Mapping[str, Slugs] = MappingProxyType({"github": github, "mkdocs": mkdocs})
"""By the word that `anchors` of a source names them with."""
