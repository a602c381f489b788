"""Offers pages below an answer that has no sources, if they are about what was asked."""

from __future__ import annotations

from collections.abc import Iterable

from app.citing.links import markdown_link, page_title
from app.citing.sections import asked_stems, stems
from app.core.prompts import Language
from app.core.turn import Turn
from app.core.types import Hit

MOST = 3
WEAKEST = 0.25  # times the evidence that an answer needs


def related_pages(turn: Turn, hits: Iterable[Hit], language: Language) -> list[Hit]:
    """The first hit of each of up to three pages that have a word of the question in title, address or headings.

    None if the best passage has next to nothing of the question, such as one on the weather.
    """
    # no evidence at all can also mean that a step has put all passages aside
    if turn.evidence and turn.evidence < WEAKEST * turn.evidence_needed:
        return []
    wanted = asked_stems(turn) - stems(" ".join(language.stopwords))
    pages: dict[str, Hit] = {}
    for hit in hits:
        headings = " ".join(section.path[-1] for section in hit.chunk.sections if section.path)
        if not wanted.isdisjoint(stems(f"{hit.chunk.context} {headings}")):
            pages.setdefault(hit.chunk.url, hit)
    return list(pages.values())[:MOST]


def related_list(pages: Iterable[Hit], language: Language) -> str:
    """Markdown of the pages under the heading for related pages; empty without pages."""
    lines = [f"- {markdown_link(page_title(hit.chunk) or hit.chunk.url, hit.chunk.url)}" for hit in pages]
    return f"\n\n{language.related}\n\n" + "\n".join(lines) if lines else ""
