"""A page's Markdown -> what a language model reads of it, with the places where that may be cut."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from app.core.types import Chunk, PlainText, Section
from app.text.plain import plain
from ingestion.convert.structure import Heading, heading_of, top_level

_LABEL = re.compile(r"\*\*[^*\n]++\*\*|__[^_\n]++__")
_OPENS, _CLOSES = (
    re.compile(r"(?m)^[ \t]*+(?::{3,}[ \t]*+[\w{]|<details\b)"),
    re.compile(r"(?m)^[ \t]*+(?::{3,}[ \t]*+$|</details>)"),
)
_FENCE_LINE = re.compile(r"(?m)^[ \t>]*+(?:(?:[-*+]|\d++[.)])[ \t]++)*+(?:```+|~~~+)")
_INDENTED = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]")  # an admonition whose text is indented below it


def plain_text(markdown: str, chunks: Iterable[Chunk]) -> PlainText:
    """The page's plain text, in which each chunk has the whole blocks that it is of; a translation has no place there."""
    lines = markdown.split("\n")
    headings = dict[int, Heading]()
    starts = [0, *(line for line in _starts(lines, headings) if line), len(lines)]
    texts = [plain("".join(f"{line}\n" for line in lines[first:last])) for first, last in pairwise(starts)]
    borders = [0]
    for text in texts:
        borders.append(borders[-1] + len(text))
    places = {
        chunk.id: (borders[bisect_right(starts, chunk.start) - 1], borders[bisect_left(starts, chunk.end)])
        for chunk in chunks
        if chunk.end
    }
    sections = tuple(_sections(headings, dict(zip(starts, borders, strict=True))))
    return PlainText("".join(texts), tuple(dict.fromkeys(borders)), sections, places)


def _starts(lines: list[str], headings: dict[int, Heading]) -> Iterator[int]:
    """The lines that the text may be cut before; the headings are noted."""
    inside, waits, indented, code = 0, False, False, False
    for block, start, end in top_level(lines):
        text = "\n".join(lines[start:end])
        kind = block.type if block else ""
        if kind == "heading":
            assert block
            headings[start], _ = heading_of(block, lines[start:end])
            inside = 0
        goes_on = indented and lines[start].startswith(("    ", "\t"))
        if kind == "heading" or not (inside or waits or goes_on or code):
            yield start
        if block and kind in ("bullet_list", "ordered_list") and not inside:
            yield from (item.start for item in block.children[1:])
        # a fence with the wrong indentation is no fence to the parser, but its author meant code
        code = kind != "heading" and code != bool(len(_FENCE_LINE.findall(text)) % 2)
        if kind != "fence":
            inside = max(0, inside + len(_OPENS.findall(text)) - len(_CLOSES.findall(text)))
        indented = goes_on or bool(_INDENTED.match(text))
        waits = kind == "heading" or (kind in ("paragraph", "html_block") and _announces(text))


def _announces(text: str) -> bool:
    """Whether the text says little without what follows: it ends with a colon, or is a label."""
    return text.rstrip(" *_").endswith(":") or bool(_LABEL.fullmatch(text.strip()))


def _sections(headings: dict[int, Heading], offsets: dict[int, int]) -> Iterator[Section]:
    trail: tuple[Heading, ...] = ()
    for line, heading in headings.items():
        trail = (*(above for above in trail if above.level < heading.level), heading)
        yield Section(offsets[line], tuple(above.text for above in trail if above.text), heading.anchor)
