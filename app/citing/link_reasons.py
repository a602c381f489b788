"""Explains the links of an answer for the trace: the passage, its section, and why that section."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.citing.citations import Citations
from app.citing.sections import asked_stems, best_section, section_reason
from app.citing.translations import Counterpart
from app.core.turn import Link, Source, Turn
from app.core.types import Chunk, Hit

_UNCITED = "linked as all passages are, since the answer cites none; "
_NO_ANCHOR = "; its anchor isn't known, so the link leads to its page"


def cited_links(
    turn: Turn, citations: Citations, sources: tuple[Source, ...], translations: Mapping[str, Counterpart]
) -> list[Link]:
    """The links to the sources: one for each cited passage, because a source can have several."""
    wanted = asked_stems(turn)
    used = citations.used or range(1, len(citations.passages) + 1)
    links = []
    for source in sources:
        for passage in (one for one in citations.passages if one.url == source.url and one.number in used):
            hit = turn.hits[passage.number - 1]
            reason = f"{'' if citations.used else _UNCITED}{_section(hit.chunk, wanted, translations)}"
            if source.section and "#" not in source.url:
                reason += _NO_ANCHOR
            links.append(
                Link(source.number, passage.number, hit.chunk.id, source.url, source.section, reason, hit.score)
            )
    return links


def _section(chunk: Chunk, wanted: set[str], translations: Mapping[str, Counterpart]) -> str:
    reason, translation = section_reason(chunk, wanted), translations.get(chunk.url)
    return f"{reason}; {translation.reason(best_section(chunk, wanted))}" if translation else reason


def offered_links(hits: Iterable[Hit], reason: str) -> list[Link]:
    """The links to whole pages that an answer without sources offers, best hits first."""
    return [Link(None, None, hit.chunk.id, hit.chunk.url, "", reason, hit.score) for hit in hits]
