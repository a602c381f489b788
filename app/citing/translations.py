"""The same section in the reader's language, where the site has its page in that language too."""

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
    """A page in the reader's language, with the sections of both pages in order."""

    page: Page
    sections: tuple[Section, ...]
    theirs: tuple[Section, ...]

    def section(self, of: Section | None) -> Section | None:
        """The section that says the same: of the same anchor, else at the same place where both have as many."""
        if of is None:
            return None
        same = self._same_anchor(of)
        if same or len(self.sections) != len(self.theirs):
            return same
        place = next((i for i, section in enumerate(self.theirs) if _name(section) == _name(of)), None)
        return None if place is None else self.sections[place]

    def reason(self, of: Section | None) -> str:
        """Why that is the section, for the trace."""
        page = f"its counterpart on the page in the question's language, {self.page.url}, is"
        if of and self._same_anchor(of):
            return f"{page} the section of the same anchor"
        return f"{page} the section at the same place" if self.section(of) else f"{page} no section for certain"

    def _same_anchor(self, of: Section) -> Section | None:
        return next((section for section in self.sections if section.anchor and section.anchor == of.anchor), None)


def _name(section: Section) -> tuple[tuple[str, ...], str]:
    return section.path, section.anchor


async def counterparts(turn: Turn) -> Mapping[str, Counterpart]:
    """By the address of each found page that isn't in the reader's language; without those that have none."""
    foreign = {hit.chunk.url for hit in turn.hits if hit.chunk.language != turn.language}
    found: dict[str, Counterpart] = {}
    try:
        for url in foreign if turn.generation else ():
            if counterpart := await _counterpart(turn, url):
                found[url] = counterpart
    except StoreError as error:  # the links found so far are right as well
        log.warning("counterparts not looked up id=%s error=%s", turn.request.id, error)
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
