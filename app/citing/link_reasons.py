"""Explains the links of an answer for the trace: the passage, its section, and why that section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.citing.sections import asked_stems, section_reason
from app.citing.support import Place
from app.core.turn import Link, Source, Turn
from app.core.types import Hit

SHOWN = 6  # words of a reason
_UNCITED = "linked as all passages are, since the answer cites none; "
_NO_ANCHOR = "; its anchor isn't known, so the link leads to its page"


def cited_links(turn: Turn, found: Iterable[tuple[Source, Sequence[Place]]], *, cited: bool) -> list[Link]:
    """The links to the sources: one for each cited passage of a page, the one that its link was made of first."""
    links, wanted = [], asked_stems(turn)
    for source, places in found:
        for place in places:
            hit = turn.hits[place.passage - 1]
            reason = "" if cited else _UNCITED
            if place.words:
                words = ", ".join(place.words[:SHOWN])
                reason += f"the passage's section that holds what is cited; words: {words}"
            else:
                reason += section_reason(hit.chunk, wanted)
            if hit.found_in:
                reason += f"; found by the translation of its page in {hit.found_in}"
            if source.section and "#" not in source.url:
                reason += _NO_ANCHOR
            links.append(
                Link(source.number, place.passage, hit.chunk.id, source.url, source.section, reason, hit.score)
            )
    return links


def offered_links(hits: Iterable[Hit], reason: str) -> list[Link]:
    """The links to whole pages that an answer without sources offers, best hits first."""
    return [Link(None, None, hit.chunk.id, hit.chunk.url, "", reason, hit.score) for hit in hits]
