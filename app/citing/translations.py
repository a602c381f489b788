"""Finds the same section in the reader's language, if the site has the page in that language."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.errors import StoreError
from app.core.turn import Turn
from app.core.types import Chunk, Page, Section
from app.index.protocols import Generation

log = logging.getLogger("app.pipeline")


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A page in the reader's language, with its sections and those of the foreign page, in order."""

    page: Page
    sections: tuple[Section, ...]
    foreign_sections: tuple[Section, ...]

    def section(self, of: Section | None) -> Section | None:
        """The same section: with the same anchor, else at the same place if both pages have as many sections."""
        if of is None:
            return None
        same = self._same_anchor(of)
        if same or len(self.sections) != len(self.foreign_sections):
            return same
        place = next((i for i, section in enumerate(self.foreign_sections) if _name(section) == _name(of)), None)
        return None if place is None else self.sections[place]

    def reason(self, of: Section | None) -> str:
        """The reason for that section, for the trace."""
        page = f"its counterpart on the page in the question's language, {self.page.url}, is"
        if of and self._same_anchor(of):
            return f"{page} the section of the same anchor"
        return f"{page} the section at the same place" if self.section(of) else f"{page} no section for certain"

    def _same_anchor(self, of: Section) -> Section | None:
        return next((section for section in self.sections if section.anchor and section.anchor == of.anchor), None)


def _name(section: Section) -> tuple[tuple[str, ...], str]:
    return section.path, section.anchor


async def counterparts(turn: Turn) -> Mapping[str, Counterpart]:
    """The counterparts of the found pages in other languages that have one, by the address of the found page."""
    foreign = {hit.chunk.url for hit in turn.hits if hit.chunk.language != turn.language}
    found: dict[str, Counterpart] = {}
    try:
        for url in foreign if turn.generation else ():
            if counterpart := await _counterpart(turn, url):
                found[url] = counterpart
    except StoreError as error:  # the counterparts found so far are right
        log.warning("failed to look up counterparts id=%s error=%s", turn.request.id, error)
    return found


async def _counterpart(turn: Turn, url: str) -> Counterpart | None:
    generation: Generation = turn.generation
    page = await generation.page(url)
    codes = {code.partition("-")[0].lower(): other for code, other in page.alternates.items()} if page else {}
    if page is None or turn.language not in codes or codes[turn.language] == url:
        return None
    other = await generation.page(codes[turn.language])
    if other is None or other.language != turn.language:
        return None
    if not turn.request.filters.admits(other.url, other.collection, {other.language}):
        return None
    sections = _sections(await generation.fetch(other.chunk_ids))
    return Counterpart(other, sections, _sections(await generation.fetch(page.chunk_ids)))


def _sections(chunks: Sequence[Chunk]) -> tuple[Section, ...]:
    return tuple({_name(section): section for chunk in chunks for section in chunk.sections}.values())
