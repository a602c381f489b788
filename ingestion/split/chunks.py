"""Pieces -> chunks: the cheapest boundaries, texts with sections and ids, and their places in what a language model reads of the page."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from app.core.types import Chunk, Page, PlainText, Section
from app.text.blocks import plain
from ingestion.convert.markdown.structure import Heading, heading_of, top_level
from ingestion.split.pieces import Piece, opens_fence


@dataclass(frozen=True, slots=True)
class Part:
    """A piece that is never cut: its length, the gap before it in the same chunk, and the cost of a break there."""

    length: int
    gap: int
    cost: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Lengths of chunks: at most `size`; below `full`, a chunk costs up to `shortness` more."""

    size: int
    full: float
    shortness: float
    chunk: float = 0.1


def bounds(parts: Sequence[Part], limits: Limits) -> list[tuple[int, int]]:
    """(first, last + 1) of each chunk, in order. No chunk is longer than the limits, but for single parts that are."""
    ends = [0, *accumulate(part.gap + part.length for part in parts)]
    begins = [end + part.gap for end, part in zip(ends, parts, strict=False)]
    costs, start_of = [0.0], [0]
    for end in range(1, len(parts) + 1):
        best, best_start = float("inf"), end - 1
        for start in range(end - 1, -1, -1):
            length = ends[end] - begins[start]
            if length > limits.size and start < end - 1:
                break
            cost = costs[start] + limits.shortness * max(0.0, 1 - length / limits.full)
            if cost < best:
                best, best_start = cost, start
        costs.append(best + limits.chunk + (parts[end].cost if end < len(parts) else 0.0))
        start_of.append(best_start)
    ranges, end = list[tuple[int, int]](), len(parts)
    while end:
        ranges.append((start_of[end], end))
        end = start_of[end]
    return ranges[::-1]


Trail = tuple[Heading, ...]
"""A heading, behind those that it is below."""


def below(trail: Trail, heading: Heading) -> Trail:
    """The trail of the heading that comes next after this one."""
    return (*(above for above in trail if above.level < heading.level), heading)


def section_of(offset: int, trail: Trail) -> Section:
    """The section of the last heading, whose text begins at this offset."""
    return Section(offset, tuple(heading.text for heading in trail if heading.text), trail[-1].anchor if trail else "")


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a page that becomes a chunk. `lines` are those of the page's Markdown (first, and the one after) with its
    blocks; (0, 0) where it can't be found in the page.
    """

    text: str
    sections: tuple[Section, ...] = ()
    lines: tuple[int, int] = (0, 0)


def cuts_of(groups: Iterable[Sequence[Piece]]) -> Iterator[Cut]:
    """The text of each group with its sections and lines, in order."""
    trail: Trail = ()
    for group in groups:
        text, sections, trail = _joined(group, trail)
        yield Cut(text, sections, (group[0].lines[0], max(piece.lines[1] for piece in group)))


def chunks_of(page: Page, cuts: Iterable[Cut]) -> tuple[Chunk, ...]:
    """A chunk of each part, in order, with the page's facts on it. Those of a translation have no place in the page."""
    seen: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for cut in cuts:
        first, last = (0, 0) if page.translated_from else cut.lines
        chunk = Chunk(
            id="",
            collection=page.collection,
            url=page.url,
            position=len(chunks),
            text=cut.text,
            language=page.language,
            title=page.title,
            sections=cut.sections,
            file=page.file,
            published=page.published,
            modified=page.modified,
            translated_from=page.translated_from,
            versions=page.versions,
            start=first,
            end=last,
        )
        chunks.append(_named(chunk, seen))
    return tuple(chunks)


def with_neighbours(chunks: Sequence[Chunk], characters: int) -> tuple[Chunk, ...]:
    """The chunks of a page, each with the whole words among the last so many characters of the one before it, and the first of
    the next one.
    """
    seen: Counter[str] = Counter()
    texts = ["", *(chunk.text for chunk in chunks), ""]
    beside = zip(chunks, texts, texts[2:], strict=False)
    return tuple(
        _named(dataclasses.replace(chunk, before=_last(before, characters), after=_first(after, characters)), seen)
        for chunk, before, after in beside
    )


def _last(text: str, characters: int) -> str:
    end = text[-characters:]
    return text if end == text else end.partition(" ")[2] or end


def _first(text: str, characters: int) -> str:
    beginning = text[:characters]
    return text if beginning == text else beginning.rpartition(" ")[0] or beginning


def _joined(group: Sequence[Piece], trail: Trail) -> tuple[str, tuple[Section, ...], Trail]:
    """(text, sections in it, headings that hold at its end)."""
    text = ""
    sections: list[Section] = []
    indent = group[0].indent
    for piece in group:
        indent = min(indent, piece.indent)
        gap = piece.gap if text else ""
        if piece.heading is not None:
            trail = below(trail, piece.heading)
        if piece.heading is not None or not sections:
            sections.append(section_of(len(text) + len(gap), trail))
        text += gap + (_outdented(piece.text, indent) if indent else piece.text)
    return text, tuple(sections), trail


def _outdented(text: str, indent: int) -> str:
    """Without so many spaces before each line: of what begins inside a list, four would make code."""
    lines = text.split("\n")
    return "\n".join(line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines)


def _named(chunk: Chunk, seen: Counter[str]) -> Chunk:
    """The chunk with its id, which includes a count for equal texts on one page."""
    embedded = chunk.embedded_text
    seen[embedded] += 1
    key = "\x00".join((chunk.collection, chunk.url, embedded, str(seen[embedded])))
    return dataclasses.replace(chunk, id=hashlib.sha256(key.encode()).hexdigest())


_LABEL = re.compile(r"\*\*[^*\n]++\*\*|__[^_\n]++__")
_OPENS, _CLOSES = (
    re.compile(r"(?m)^[ \t]*+(?::{3,}[ \t]*+[\w{]|<details\b)"),
    re.compile(r"(?m)^[ \t]*+(?::{3,}[ \t]*+$|</details>)"),
)
_INDENTED = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]")  # an admonition whose text is indented below it


def plain_text(markdown: str, chunks: Iterable[Chunk]) -> PlainText:
    """The page's plain text, in which each chunk has the whole blocks that it is of; a translation has no place there."""
    lines = markdown.split("\n")
    headings = dict[int, Heading]()
    starts = [0, *(line for line in _starts(lines, headings) if line), len(lines)]
    texts = [plain("\n".join([*lines[first:last], ""])) for first, last in pairwise(starts)]
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
        code = kind != "heading" and code != opens_fence(text)
        if kind != "fence" and (inside or ":::" in text or "<details" in text):
            inside = max(0, inside + len(_OPENS.findall(text)) - len(_CLOSES.findall(text)))
        indented = goes_on or bool(_INDENTED.match(text))
        waits = kind == "heading" or (kind in ("paragraph", "html_block") and _announces(text))


def _announces(text: str) -> bool:
    """True if the text says little without what follows: it ends with a colon, or is a label."""
    return text.rstrip(" *_").endswith(":") or bool(_LABEL.fullmatch(text.strip()))


def _sections(headings: dict[int, Heading], offsets: dict[int, int]) -> Iterator[Section]:
    trail: Trail = ()
    for line, heading in headings.items():
        trail = below(trail, heading)
        yield section_of(offsets[line], trail)
