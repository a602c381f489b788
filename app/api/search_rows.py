"""The rows of a search: each found section with its breadcrumbs and an excerpt, and the words of the query marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from app.api.answer_models import Highlights, Passage, PieceObject
from app.citing.sections import asked_stems, best_section, section_text
from app.core.turn import Turn
from app.core.types import Hit, Section
from app.pipeline.steps.cite import source_of
from app.pipeline.type_ahead import sections_of, sought_in
from app.text.readable import readable
from app.text.sought import Piece, Sought
from app.text.titles import plain_title


def rows_of(turn: Turn) -> list[Passage]:
    """The passages, best first; of a search as you type, each section once, and the sections of a page one below the other."""
    typed = turn.request.as_you_type
    sought = sought_in(turn)
    sections = sections_of(turn) if typed else _sections(turn)
    rows = [_row(number, *one, sought) for number, one in enumerate(zip(turn.hits, sections, strict=True), start=1)]
    return list(_grouped(rows)) if typed else rows


def _grouped(rows: Sequence[Passage]) -> Iterator[Passage]:
    by_page: dict[str, dict[str, Passage]] = {}
    for row in rows:
        by_page.setdefault(row["url"].partition("#")[0], {}).setdefault(row["url"], row)
    ordered = (row for of_page in by_page.values() for row in of_page.values())
    for number, row in enumerate(ordered, start=1):
        yield {**row, "number": number}


def _sections(turn: Turn) -> list[Section | None]:
    """Of each hit the section with most words of the query."""
    wanted = asked_stems(turn)
    return [best_section(hit.chunk, wanted) for hit in turn.hits]


def _row(number: int, hit: Hit, section: Section | None, sought: Sought) -> Passage:
    chunk, source = hit.chunk, source_of(number, hit, section)
    headings = map(plain_title, section.path if section else ())
    breadcrumbs = list(dict.fromkeys((source.title, *headings)))
    return {
        "object": "passage",
        "id": chunk.id,
        "number": source.number,
        "title": source.title,
        "url": source.url,
        "section": source.section,
        "breadcrumbs": breadcrumbs,
        "language": source.language,
        "score": source.score,
        "translated_from": source.translated_from,
        "headings": chunk.heading_path,
        "collection": chunk.collection,
        "published": chunk.published,
        "modified": chunk.modified,
        "text": chunk.text,
        "highlights": _highlights(breadcrumbs, section_text(chunk, section), sought),
        "scores": {"lexical": hit.lexical, "vector": hit.cosine, "fused": hit.fused, "rerank": hit.rerank},
    }


def _highlights(breadcrumbs: Sequence[str], text: str, sought: Sought) -> Highlights:
    return {
        "breadcrumbs": [_objects(sought.pieces(crumb)) for crumb in breadcrumbs],
        "excerpt": _objects(sought.excerpt(readable(text))),
    }


def _objects(pieces: Iterable[Piece]) -> list[PieceObject]:
    return [{"text": piece.text, "match": piece.match} for piece in pieces]
