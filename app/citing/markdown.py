"""Finds the parts of a Markdown text and their places in the source, as a CommonMark parser reads them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.citing.parser import Span, parser_with_spans

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
    """Whether a line that begins so ends every block before it, except a list that it continues."""
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
        self._starts = [0]
        for found in re.finditer("\n", text):
            self._starts.append(found.end())
        self._starts.append(len(text))
        self._reading = Reading()
        self._covered: list[tuple[int, int]] = []
        self._cells: dict[int, int] = {}  # where the last cell found in a line ends

    def reading(self, tokens: Iterable[Token]) -> Reading:
        found = self._reading
        cell = False
        for token in tokens:
            if token.type in {"fence", "code_block"} and token.map:
                found.code.append(self._lines(token.map))
                if token.type == "code_block":
                    self._indented(token, *found.code[-1])
                found.odd = found.odd or (token.type == "fence" and self._loose(token, *found.code[-1]))
            elif token.type == "inline" and token.content and token.map:
                self._inline(token, cell=cell)
            elif token.type == "table_open" and token.map:
                rule = token.map[0] + 1  # without a bar, it may be the line of a heading
                found.odd = found.odd or "|" not in self._text[slice(*self._lines((rule, rule + 1)))]
            cell = token.type in {"th_open", "td_open"}
        self._covered += found.code
        for gap in self._gaps():
            self._gap(*gap)
        return found

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
        """Whether other clients can see another end of the fence."""
        lines = self._text[start:end].rstrip("\n").split("\n")
        closing = [_CLOSING.fullmatch(line) for line in lines]
        ends = [
            number for number, found in enumerate(closing) if number and found and found[1].startswith(fence.markup)
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
    taken += [(found.start(), found.end()) for found in re.finditer("\n", content)]
    at = 0
    for start, end in sorted(taken):
        if start > at:
            yield at, start
        at = max(at, end)
    if at < len(content):
        yield at, len(content)


_PARSER = parser_with_spans()
_BLOCKS = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["inline", "html_block", "reference"])
