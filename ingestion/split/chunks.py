"""Groups of pieces -> chunks with text, sections, ids, and the neighbouring text."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.types import Chunk, Page, Section
from ingestion.convert.structure import Heading
from ingestion.split.blocks import Piece

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
