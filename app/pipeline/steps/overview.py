"""Answers questions about the documentation as a whole from its home page and its top pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from app.core.prompts import Prompts
from app.core.turn import Turn
from app.core.types import Hit, Page
from app.index.protocols import Generation
from app.pipeline.runner import Changes
from app.text.language import is_overview

MOST_PAGES = 10


@dataclass(frozen=True)
class Overview:
    """Replaces the hits of "What does this documentation cover?", which no single passage answers."""

    prompts: Prompts
    name = "overview"
    reads = ("question", "language", "hits", "generation")
    uses = ("related",)
    writes = ("hits", "related", "overview")
    optional = True
    helper_calls = 0
    _listed: dict[int, tuple[Page, ...]] = field(default_factory=dict, init=False)

    async def __call__(self, turn: Turn) -> Changes:
        """The first chunk of each home page and of the pages next to it; nothing for any other question."""
        if not is_overview(turn.question, self.prompts.language(turn.language)):
            return {}
        pages = await top_pages(turn.generation, await self._pages(turn.generation), turn)
        chunks = await turn.generation.fetch([page.chunk_ids[0] for page in pages])
        hits = tuple(Hit(chunk, fused=1.0) for chunk in chunks)
        return {"hits": hits, "related": (), "overview": True} if hits else {}

    async def _pages(self, generation: Generation) -> tuple[Page, ...]:
        """All pages. They are kept until the next generation, because reading them takes long on large sites."""
        if (id_ := generation.info.id) not in self._listed:
            pages = await generation.pages()
            self._listed.clear()
            self._listed[id_] = pages
        return self._listed[id_]


async def top_pages(generation: Generation, pages: Sequence[Page], turn: Turn, most: int = MOST_PAGES) -> list[Page]:
    """The home page of each collection in the reader's language, if there is one; then the pages nearest to the top.

    Among pages of one depth, those that a home page links to come first, in its order.
    """
    filters = turn.request.filters
    admitted = [
        page
        for page in pages
        if page.chunk_ids and filters.admits(page.url, page.collection, {page.language}, page.versions)
    ]
    own = [page for page in admitted if page.language == turn.language] or admitted
    homes = list(_homes(own))
    whole = [await generation.page(home.url) for home in homes[:most]]
    linked = "\n".join(page.markdown for page in whole if page)

    def rank(page: Page) -> tuple[int, int, str]:
        place = linked.find(f"({page.url}")
        return _depth(page), place if place >= 0 else len(linked), page.url

    others = sorted((page for page in own if page not in homes), key=rank)
    return [*homes, *others][:most]


def _homes(pages: Sequence[Page]) -> Iterator[Page]:
    """Of each collection, the page with the shortest path."""
    for collection in dict.fromkeys(page.collection for page in pages):
        of_it = (page for page in pages if page.collection == collection)
        yield min(of_it, key=lambda page: (_depth(page), len(page.url), page.url))


def _depth(page: Page) -> int:
    return len([part for part in urlsplit(page.url).path.split("/") if part])
