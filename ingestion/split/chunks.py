"""Groups of pieces -> chunks with text, sections, ids, and the neighbouring text."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from app.core.types import Chunk, Page, Section
from ingestion.convert.structure import Heading
from ingestion.split.blocks import Piece

_Trail = tuple[Heading, ...]
_FENCE_LINE = re.compile(r"(?m)^[ \t>]*+(?:[-*+][ \t]++|\d++[.)][ \t]++)*+(?:`{3,}|~{3,}).*\n?")
_CUT = "…"


def make_chunks(page: Page, groups: Iterable[Sequence[Piece]]) -> tuple[Chunk, ...]:
    """A chunk of each group, in order, with the page's facts on it."""
    seen: Counter[str] = Counter()
    chunks: list[Chunk] = []
    trail: _Trail = ()
    for group in groups:
        text, sections, trail = _joined(group, trail)
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
            translated_from=page.translated_from,
            versions=page.versions,
        )
        chunks.append(_named(chunk, seen))
    return tuple(chunks)


def _joined(group: Sequence[Piece], trail: _Trail) -> tuple[str, tuple[Section, ...], _Trail]:
    """(text, sections in it, headings that hold at its end)."""
    text = ""
    sections: list[Section] = []
    for piece in group:
        gap = piece.gap if text else ""
        if piece.heading is not None:
            trail = (*(h for h in trail if h.level < piece.heading.level), piece.heading)
        if piece.heading is not None or not sections:
            anchor = trail[-1].anchor if trail else ""
            sections.append(Section(len(text) + len(gap), tuple(h.text for h in trail if h.text), anchor))
        text += gap + piece.text
    return text, tuple(sections), trail


def _named(chunk: Chunk, seen: Counter[str]) -> Chunk:
    """The chunk with its id, which includes a count for equal texts on one page."""
    embedded = chunk.embedded_text
    seen[embedded] += 1
    key = "\x00".join((chunk.collection, chunk.url, embedded, str(seen[embedded])))
    return dataclasses.replace(chunk, id=hashlib.sha256(key.encode()).hexdigest())


def with_neighbours(chunks: Sequence[Chunk], characters: int, *, across_headings: bool) -> tuple[Chunk, ...]:
    """The chunks with up to `characters` characters of the one before and the one after.

    Unless `across_headings`, a chunk that begins with a heading and the one before it share nothing: a new topic begins.
    """
    if not characters:
        return tuple(chunks)
    made: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        last, following = chunks[number - 1 : number], chunks[number + 1 : number + 2]
        before = last[0] if last and (across_headings or not _begins(chunk)) else None
        after = following[0] if following and (across_headings or not _begins(following[0])) else None
        made.append(
            dataclasses.replace(
                chunk,
                before=_end(before.text, characters) if before else "",
                after=_start(after.text, characters) if after else "",
            )
        )
    return tuple(made)


def _begins(chunk: Chunk) -> bool:
    return bool(re.match(r"#{1,6}[ \t]", chunk.text))


def _end(text: str, characters: int) -> str:
    """The last words, without fences: half a code block must not open one around what follows."""
    plain = _FENCE_LINE.sub("", text).strip()
    if len(plain) <= characters:
        return plain
    cut = plain[len(plain) - characters + 1 :]
    return _CUT + (cut.split(maxsplit=1)[-1] if re.search(r"\s", cut.strip()) else cut.strip())


def _start(text: str, characters: int) -> str:
    plain = _FENCE_LINE.sub("", text).strip()
    if len(plain) <= characters:
        return plain
    cut = plain[: characters - 1]
    return (cut.rsplit(maxsplit=1)[0] if re.search(r"\s", cut.strip()) else cut.strip()) + _CUT
