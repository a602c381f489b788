"""Reads the Markdown of a model, piece by piece while it streams, and edits it: parts are removed, replaced or escaped."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from app.text import blocks

Kind = Literal["backticks", "escape", "link", "image", "autolink", "html_inline", "entity"]
_SIGNS: dict[Kind, str] = {
    "backticks": "`", "escape": "\\", "link": "[", "image": "![", "autolink": "<", "html_inline": "<", "entity": "&",
}  # fmt: skip


class Span(NamedTuple):
    """An inline element. A link or image has its words at `inner`; `target` is its address as the parser decodes it."""

    kind: Kind
    start: int
    end: int
    inner: tuple[int, int] = (0, 0)
    target: str = ""
    title: str = ""


def parser_with_spans() -> MarkdownIt:
    """A parser whose inline tokens have their `Span`s under `meta["spans"]`."""
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 20}).enable(["table", "strikethrough"])
    parser.disable(["html_block", "reference"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005  # other clients accept what this one refuses
    parser.normalizeLink = str  # type: ignore[method-assign,assignment]
    helpers = parser.helpers

    def label(state: StateInline, start: int, disableNested: bool = False) -> int:  # noqa: N803
        end: int = helpers.parseLinkLabel(state, start, disableNested)
        state.env.setdefault("labels", {})[start] = end
        return end

    parser.helpers = SimpleNamespace(  # type: ignore[assignment]
        parseLinkLabel=label,
        parseLinkDestination=helpers.parseLinkDestination,
        parseLinkTitle=helpers.parseLinkTitle,
    )
    rules = dict(zip(parser.get_active_rules()["inline"], parser.inline.ruler.getRules(""), strict=True))
    for kind in _SIGNS:
        parser.inline.ruler.at(kind, _noted(kind, rules[kind]))
    parser.core.ruler.at("inline", _inlines)
    return parser


def _inlines(state: Any) -> None:
    """Parses inline tokens and notes their spans."""
    for token in state.tokens:
        if token.type == "inline":
            state.env["spans"], state.env["labels"] = [], {}
            state.md.inline.parse(token.content, state.md, state.env, token.children)
            token.meta["spans"] = state.env["spans"]


def _noted(kind: Kind, rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    sign = _SIGNS[kind]

    def noted(state: StateInline, silent: bool) -> bool:
        if not state.src.startswith(sign, state.pos):
            return False
        start, count = state.pos, len(state.tokens)
        spans, labels = state.env["spans"], state.env["labels"]
        if kind == "image":  # the parser reads its words as a source of their own
            state.env["spans"], state.env["labels"] = [], dict(labels)
        matched = rule(state, silent)
        if kind == "image":
            labels = state.env["labels"] if not (matched and not silent) else labels
            state.env["spans"] = spans
        if matched and not silent:
            tokens = state.tokens[count:]
            if _is_one(kind, state.src, start, tokens):
                spans.append(_span(kind, start, state, tokens))
        state.env["labels"] = labels
        return matched

    return noted


def _is_one(kind: Kind, text: str, start: int, tokens: list[Token]) -> bool:
    """True if the rule found its element, and didn't just skip signs."""
    if kind == "escape":
        return bool(blocks.ESCAPE.match(text, start))
    return kind != "backticks" or bool(tokens and tokens[-1].type == "code_inline")


def _span(kind: Kind, start: int, state: StateInline, tokens: list[Token]) -> Span:
    if kind == "link":
        opened = next(token for token in tokens if token.type == "link_open")
        inner = (start + 1, state.env["labels"][start])
        return Span(kind, start, state.pos, inner, str(opened.attrs["href"]), str(opened.attrs.get("title", "")))
    if kind == "image":
        image = tokens[-1]
        inner = (start + 2, start + 2 + len(image.content))
        return Span(kind, start, state.pos, inner, str(image.attrs["src"]), str(image.attrs.get("title", "")))
    return Span(kind, start, state.pos)


_MARKS = re.compile(r"[^\s>#*+=_|:.)\d-]")  # signs that no block marker has
_CLOSING = re.compile(r"[ \t>]*([`~]{3,})[ \t]*")
# what other clients don't read as a table
_BEGINS = re.compile(r"#{1,6}(?!\S)|[-+*](?!\S)|\d{1,9}[.)](?!\S)|>|`{3}|~{3}")
_PROBE = "x"


class Words(NamedTuple):
    """Plain text within a line; `bracketed` where its paragraph begins with a bracket, as a definition does."""

    start: int
    end: int
    bracketed: bool


class Indented(NamedTuple):
    """Code without a fence; `indent` is the indent of a fence there, -1 if unknown."""

    start: int
    end: int
    code: str
    indent: int


@dataclass(slots=True)
class Reading:
    """The parts of a text. `odd`: the place of some text is unknown."""

    spans: list[Span] = field(default_factory=list)
    texts: list[Words] = field(default_factory=list)
    code: list[tuple[int, int]] = field(default_factory=list)
    indented: list[Indented] = field(default_factory=list)
    line_starts: set[int] = field(default_factory=set)  # where the text of a line begins, after all markers
    surplus: list[tuple[int, int]] = field(default_factory=list)  # cells without a column
    odd: bool = False


def read(text: str) -> Reading:
    """The text's links, images, tags, code and plain text. HTML blocks and link definitions count as plain text."""
    return _Placed(text).reading(_PARSER.parse(text))


def begins_anew(text: str, line: str) -> bool:
    """True if a line that begins so ends every block before it, except a list that it continues."""
    at = text.count("\n")
    tokens = _BLOCKS.parse(f"{text}{line}{_PROBE}")
    return any(
        token.map is not None
        and token.map[0] == at
        and (token.level == 0 or (token.level == 1 and token.type == "list_item_open"))
        for token in tokens
    )


class _Placed:
    """Finds the place of each token in the source."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [*accumulate([len(line) + 1 for line in text.split("\n")], initial=0)]  # of the lines
        self._starts[-1] = len(text)
        self._reading = Reading()
        self._covered: list[tuple[int, int]] = []
        self._cells: dict[int, int] = {}  # where the last cell found in a line ends

    def reading(self, tokens: Iterable[Token]) -> Reading:
        reading = self._reading
        cell = False
        for token in tokens:
            if token.type in {"fence", "code_block"} and token.map:
                reading.code.append(self._lines(token.map))
                if token.type == "code_block":
                    self._indented(token, *reading.code[-1])
                reading.odd = reading.odd or (token.type == "fence" and self._loose(token, *reading.code[-1]))
            elif token.type == "inline" and token.content and token.map:
                self._inline(token, cell=cell)
            elif token.type == "table_open" and token.map:
                rule = token.map[0] + 1  # without a bar, it may be the line of a heading
                reading.odd = reading.odd or "|" not in self._text[slice(*self._lines((rule, rule + 1)))]
            cell = token.type in {"th_open", "td_open"}
        self._covered += reading.code
        for gap in self._gaps():
            self._gap(*gap)
        return reading

    def _gap(self, start: int, end: int) -> None:
        while mark := _MARKS.search(self._text, start, end):
            line = bisect_right(self._starts, mark.start()) - 1
            if line not in self._cells:
                self._reading.odd = True
                return
            start = self._starts[line + 1]
            self._reading.surplus.append((mark.start(), start - self._text.endswith("\n", 0, start)))

    def _indented(self, code: Token, start: int, end: int) -> None:
        first = self._text[start:end].split("\n", 1)[0]
        lead = first[: len(first) - len(code.content.split("\n", 1)[0])]
        indent = 0 if code.level == 0 else len(lead) - 4
        self._reading.indented.append(
            Indented(start, end, code.content, -1 if lead.strip(" ") and code.level else indent)
        )

    def _loose(self, fence: Token, start: int, end: int) -> bool:
        """True if other clients can see another end of the fence."""
        lines = self._text[start:end].rstrip("\n").split("\n")
        closing = [_CLOSING.fullmatch(line) for line in lines]
        ends = [
            number for number, match in enumerate(closing) if number and match and match[1].startswith(fence.markup)
        ]
        if not ends:
            return end < len(self._text)
        return ends != [len(lines) - 1] or lines[-1].strip("> ").strip(fence.markup[0]) != ""

    def _lines(self, numbers: Iterable[int]) -> tuple[int, int]:
        first, last = numbers
        return self._starts[first], self._starts[min(last, len(self._starts) - 1)]

    def _gaps(self) -> Iterator[tuple[int, int]]:
        at = 0
        for start, end in sorted(self._covered):
            if start > at:
                yield at, start
            at = max(at, end)
        yield at, len(self._text)

    def _inline(self, token: Token, *, cell: bool) -> None:
        assert token.map is not None
        places = self._cell(token) if cell else self._places(token.content, *token.map)
        if places is None:
            self._reading.odd = True
            return
        self._covered.append((places[0], places[-1]))
        spans = token.meta.get("spans", [])
        for span in spans:
            inner = (places[span.inner[0]], places[span.inner[1]])
            self._reading.spans.append(span._replace(start=places[span.start], end=places[span.end], inner=inner))
        for start, end in _texts(token.content, spans):
            self._reading.texts.append(Words(places[start], places[end], token.content.startswith("[")))

    def _places(self, content: str, first: int, last: int) -> list[int] | None:
        """The place in the source of each character of the content, and of its end."""
        places: list[int] = []
        for number, line in enumerate(content.split("\n"), start=first):
            if number >= last:
                return None
            start, end, words = self._starts[number], self._starts[number + 1], line.strip()
            at = start + len(self._text[start:end].rstrip()) - len(words)
            if not self._text.startswith(words, at):  # a heading can end with signs
                at = self._text.find(words, start, end)
            if at < start:
                return None
            self._reading.line_starts.add(at)
            lead = len(line) - len(line.lstrip())
            places += [max(at - lead + i, start) for i in range(len(line) + 1)]
        return places

    def _cell(self, token: Token) -> list[int] | None:
        """As `_places`, for a table cell, where a bar is escaped."""
        assert token.map is not None
        line = token.map[0]
        written = token.content.replace("|", "\\|")
        at = self._text.find(written, self._cells.get(line, self._starts[line]), self._starts[line + 1])
        if at < 0 or (
            line not in self._cells and _BEGINS.match(written) and "|" not in self._text[self._starts[line] : at]
        ):
            return None
        self._cells[line] = at + len(written)
        self._reading.line_starts.add(at)
        places = []
        for sign in token.content:
            places.append(at)
            at += 2 if sign == "|" else 1
        return [*places, at]


def _texts(content: str, spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """The parts in no span, or in the words of a link or image."""
    taken = []
    for span in spans:
        if span.kind in {"link", "image"}:
            taken += [(span.start, span.inner[0]), (span.inner[1], span.end)]
        else:
            taken.append((span.start, span.end))
    taken += [(at, at + 1) for at, sign in enumerate(content) if sign == "\n"]
    at = 0
    for start, end in sorted(taken):
        if start > at:
            yield at, start
        at = max(at, end)
    if at < len(content):
        yield at, len(content)


_PARSER = parser_with_spans()
_BLOCKS = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["inline", "html_block", "reference"])


_BRACKET = re.compile(r"[\[\]]")


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
    if a marker of a list would stand alone. The blank between it and a word goes with it.
    """
    in_order: list[Edit] = []
    for edit in sorted(set(edits), reverse=True):
        bares = not edit.text and edit.start in reading.line_starts
        behind, alone = text[edit.end : edit.end + 2], not in_order or in_order[-1].start > edit.end + 1
        if bares and alone and behind[:1] == " " and behind[1:].isalpha():
            edit = edit._replace(end=edit.end + 1)  # noqa: PLW2901
        marked = bares and (_may_begin(text, edit.end, in_order) or _empties_item(text, edit))
        in_order.append(edit._replace(text="…") if marked else edit)
    return in_order[::-1]


def _may_begin(text: str, at: int, behind: list[Edit]) -> bool:
    """True if what is left from here may begin a block."""
    if behind and behind[-1].start == at and not behind[-1].text:
        at = behind[-1].end
    return not text[at : at + 1].isalpha() and bool(text[at:].strip())


def _empties_item(text: str, edit: Edit) -> bool:
    """True if only a marker would be left of the line: an empty item can't interrupt a paragraph."""
    before, behind = text[: edit.start].rpartition("\n")[2], text[edit.end :].partition("\n")[0]
    return bool(before.strip()) and not behind.strip()


def escaping(signs: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Edit]:
    """A backslash before each of the signs in this part of the text."""
    for match in signs.finditer(text, start, end):
        yield Edit(match.start(), match.start(), "\\")


def escaping_open_brackets(text: str, start: int, end: int) -> Iterator[Edit]:
    """A backslash before each bracket that nothing closes: some clients take code behind it for its end."""
    open_at: list[int] = []
    for match in _BRACKET.finditer(text, start, end):
        if match[0] == "[":
            open_at.append(match.start())
        elif open_at:
            open_at.pop()
    yield from (Edit(at, at, "\\") for at in open_at)


def fenced(block: Indented) -> Edit:
    """The indented code as a fenced block, which all clients read as code."""
    indent, lines = " " * block.indent, blocks.fenced(block.code.rstrip("\n")).split("\n")
    return Edit(block.start, block.end, "".join(f"{indent}{line}".rstrip() + "\n" for line in lines))
