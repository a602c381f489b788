"""Pieces -> chunks: the cheapest boundaries, texts with sections and ids, and their places in what a language model reads of the page."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from app.core.types import Chunk, Page, PlainText, Section
from app.text.blocks import plain
from ingestion.convert.markdown.structure import Heading, heading_of, top_level
from ingestion.split.pieces import FENCE_LINE, Piece


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


@dataclass(slots=True)
class _Cheapest:
    """The cheapest of the starts in a window that only moves forward; of equal ones the last."""

    _starts: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, cost: float, start: int) -> None:
        while self._starts and self._starts[-1][0] >= cost:
            self._starts.pop()
        self._starts.append((cost, start))

    def since(self, first: int) -> list[tuple[float, int]]:
        """(cost, start) of the cheapest from this start on; empty when the window is."""
        while self._starts and self._starts[0][1] < first:
            self._starts.popleft()
        return [self._starts[0]] if self._starts else []


def bounds(parts: Sequence[Part], limits: Limits) -> list[tuple[int, int]]:
    """(first, last + 1) of each chunk, in order, in time that grows with the number of parts alone.

    No chunk is longer than the limits, but for single parts that are.
    """
    ends = [0, *accumulate(part.gap + part.length for part in parts)]
    begins = [end + part.gap for end, part in zip(ends, parts, strict=False)]
    slope = limits.shortness / limits.full
    costs, start_of = [0.0], [0]
    full, short = _Cheapest(), _Cheapest()  # costs of starts of full chunks, and of shorter ones
    first = first_short = 0
    for end in range(1, len(parts) + 1):
        length = ends[end]
        short.add(costs[-1] + slope * begins[end - 1], end - 1)
        while first < end - 1 and length - begins[first] > limits.size:
            first += 1
        while first_short < end and length - begins[first_short] >= limits.full:
            full.add(costs[first_short], first_short)
            first_short += 1
        ways = full.since(first)
        ways += [
            (cost + limits.shortness - slope * length, start) for cost, start in short.since(max(first, first_short))
        ]
        cost, start = min(ways, key=lambda way: (way[0], -way[1]))
        costs.append(cost + limits.chunk + (parts[end].cost if end < len(parts) else 0.0))
        start_of.append(start)
    ranges, end = list[tuple[int, int]](), len(parts)
    while end:
        ranges.append((start_of[end], end))
        end = start_of[end]
    return ranges[::-1]


_Trail = tuple[Heading, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a page that becomes a chunk. `lines` are those of the page's Markdown (first, and the one after) with its
    blocks; (0, 0) where it can't be found in the page.
    """

    text: str
    sections: tuple[Section, ...] = ()
    lines: tuple[int, int] = (0, 0)


def make_chunks(page: Page, groups: Iterable[Sequence[Piece]]) -> tuple[Chunk, ...]:
    """A chunk of each group, in order, with the page's facts on it."""
    cuts: list[Cut] = []
    trail: _Trail = ()
    for group in groups:
        text, sections, trail = _joined(group, trail)
        cuts.append(Cut(text, sections, (group[0].lines[0], max(piece.lines[1] for piece in group))))
    return chunks_of(page, cuts)


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


def _joined(group: Sequence[Piece], trail: _Trail) -> tuple[str, tuple[Section, ...], _Trail]:
    """(text, sections in it, headings that hold at its end)."""
    text = ""
    sections: list[Section] = []
    indent = group[0].indent
    for piece in group:
        indent = min(indent, piece.indent)
        gap = piece.gap if text else ""
        if piece.heading is not None:
            trail = (*(h for h in trail if h.level < piece.heading.level), piece.heading)
        if piece.heading is not None or not sections:
            anchor = trail[-1].anchor if trail else ""
            sections.append(Section(len(text) + len(gap), tuple(h.text for h in trail if h.text), anchor))
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
        code = kind != "heading" and code != bool(len(FENCE_LINE.findall(text)) % 2)
        if kind != "fence":
            inside = max(0, inside + len(_OPENS.findall(text)) - len(_CLOSES.findall(text)))
        indented = goes_on or bool(_INDENTED.match(text))
        waits = kind == "heading" or (kind in ("paragraph", "html_block") and _announces(text))


def _announces(text: str) -> bool:
    """True if the text says little without what follows: it ends with a colon, or is a label."""
    return text.rstrip(" *_").endswith(":") or bool(_LABEL.fullmatch(text.strip()))


def _sections(headings: dict[int, Heading], offsets: dict[int, int]) -> Iterator[Section]:
    trail: tuple[Heading, ...] = ()
    for line, heading in headings.items():
        trail = (*(above for above in trail if above.level < heading.level), heading)
        yield Section(offsets[line], tuple(above.text for above in trail if above.text), heading.anchor)
