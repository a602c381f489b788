"""A page -> chunks along its headings, each as full as its sections allow."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from app.core.types import Chunk, Page, Section
from ingestion.blocks import Heading, Piece, pieces

SPLITTER = "markdown-1"
"""Another version means other chunks from the same page."""

_Trail = tuple[Heading, ...]


def splitter(size: int) -> str:
    """What the index remembers of how pages were split."""
    return f"{SPLITTER}/{size}"


def split(page: Page, size: int) -> tuple[Chunk, ...]:
    """The page's chunks in order, none longer than `size` characters but for single rows of tables."""
    parts = pieces(page.markdown, size)
    seen: Counter[str] = Counter()
    chunks: list[Chunk] = []
    trail: _Trail = ()
    for first, last in _bounds(parts, size):
        text, sections, trail = _chunk(parts[first:last], trail)
        chunk = Chunk(
            id="",
            collection=page.collection,
            url=page.url,
            position=len(chunks),
            text=text,
            language=page.language,
            title=page.title,
            sections=sections,
            file=page.file,
            published=page.published,
            modified=page.modified,
        )
        chunks.append(_named(chunk, seen))
    return tuple(chunks)


def _bounds(parts: Sequence[Piece], size: int) -> list[tuple[int, int]]:
    """Where chunks start and end, so that the sum of empty room and of costs of breaks is least."""
    best = [0.0] + [float("inf")] * len(parts)
    start_of = [0] * (len(parts) + 1)
    for end in range(1, len(parts) + 1):
        length = 0
        cost_after = parts[end].cost if end < len(parts) else 0.0
        for start in range(end - 1, -1, -1):
            length += len(parts[start].text) + (len(parts[start + 1].gap) if start + 1 < end else 0)
            if length > size and start < end - 1:
                break
            total = best[start] + _room(length, size) + cost_after
            if total < best[end]:
                best[end], start_of[end] = total, start
    bounds, end = list[tuple[int, int]](), len(parts)
    while end:
        bounds.append((start_of[end], end))
        end = start_of[end]
    return bounds[::-1]


def _room(length: int, size: int) -> float:
    """What a chunk of this length costs: above half it doesn't matter, so that breaks fall where sections end."""
    return 0.1 + max(0.0, 0.5 - length / size) * 2.0


def _chunk(parts: Iterable[Piece], trail: _Trail) -> tuple[str, tuple[Section, ...], _Trail]:
    """(text, sections in it, headings that hold at its end)."""
    text = ""
    sections: list[Section] = []
    for piece in parts:
        gap = piece.gap if text else ""
        if piece.heading is not None:
            trail = (*(h for h in trail if h.level < piece.heading.level), piece.heading)
        if piece.heading is not None or not sections:
            anchor = trail[-1].anchor if trail else ""
            sections.append(Section(len(text) + len(gap), tuple(h.text for h in trail if h.text), anchor))
        text += gap + piece.text
    return text, tuple(sections), trail


def _named(chunk: Chunk, seen: Counter[str]) -> Chunk:
    """The chunk with its id; equal texts on one page are told apart by their count."""
    embedded = chunk.embedded_text
    seen[embedded] += 1
    key = "\x00".join((chunk.collection, chunk.url, embedded, str(seen[embedded])))
    return dataclasses.replace(chunk, id=hashlib.sha256(key.encode()).hexdigest())
