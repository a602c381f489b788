"""What the drafts of all stores have in common: their pages, and checks of what they are given."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self

from app.core.errors import IndexMismatch, StoreError
from app.core.generation import GenerationInfo, Recipe
from app.core.types import Chunk, Page, Vector
from app.index.ranking.counterparts import compared, uncompared


class DraftPages:
    """The pages of a draft, which begins with those of the live generation if they can be shared. `_open` until it is published or
    left.
    """

    def __init__(self, recipe: Recipe, live: GenerationInfo | None, *, rebuilds: bool) -> None:
        self.rebuilds = rebuilds
        self._recipe = recipe
        self._sources = live.sources if live else ()
        self._pages: dict[str, Page] = {}
        self._base_chunks: frozenset[str] = frozenset()
        self._open = True
        self._writing = asyncio.Lock()

    async def page_states(self) -> Mapping[str, Page]:
        """The pages as the draft has them, by address, without Markdown."""
        return dict(self._pages)

    async def missing(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """The chunks that the draft doesn't have yet: `put` needs vectors for them."""
        return tuple(chunk for chunk in chunks if chunk.id not in self._base_chunks)

    async def touch(self, pages: Iterable[Page]) -> None:
        """Replace the records of these pages without writing chunks; unknown pages are ignored."""
        self._check_open()
        for page in pages:
            if (known := self._pages.get(page.url)) is not None:
                self._pages[page.url] = touched = page.without_texts(known.derived.chunk_ids)
                moved = touched.derived.translation_set != known.derived.translation_set
                self._note_touched(touched, changed=touched != known, moved=moved)

    def _note_touched(self, page: Page, *, changed: bool, moved: bool) -> None:
        """Note a page with another record, or one that moved to another translation set."""
        raise NotImplementedError

    async def _compare(self) -> None:
        """Store with the pages of each translation set which of their chunks say the same, where that isn't stored yet."""
        for sets in uncompared(self._pages):
            chunks = await self._chunks_of([page.url for pages in sets for page in pages if len(pages) > 1])
            for pages in sets:
                await self.touch(await asyncio.to_thread(compared, pages, chunks))

    async def _chunks_of(self, urls: Sequence[str]) -> Mapping[str, Chunk]:
        """The chunks of these pages as the draft has them, by id."""
        raise NotImplementedError

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError("This draft was published or left already: begin another one with `store.draft`.")

    def _described(self, id_: int) -> GenerationInfo:
        """The facts about the generation of this number, published now."""
        pages = self._pages.values()
        now, languages = datetime.now(UTC).isoformat(timespec="seconds"), {page.language for page in pages}
        chunks = sum(len(page.derived.chunk_ids) for page in pages)
        return GenerationInfo(id_, self._recipe, now, tuple(sorted(languages)), len(pages), chunks, self._sources)

    async def __aenter__(self) -> Self:
        return self


def check_vectors(
    recipe: Recipe, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector], known: Collection[str]
) -> None:
    """Check what `Draft.put` is given; `known` are the ids of the chunks that aren't `missing`.

    Raises `StoreError` if a vector is missing, and `IndexMismatch` if one has another length than the index.
    """
    wanted = {chunk.id: f"chunk {chunk.id} of {chunk.url}" for chunk in chunks if chunk.id not in known}
    if recipe.questions:
        wanted |= {chunk.questions_id: f"the questions of chunk {chunk.id}" for chunk in chunks if chunk.questions}
    if recipe.summaries and page.summary_text:
        wanted[page.url] = f"the summary of {page.url}"
    for id_, what in wanted.items():
        if id_ not in vectors:
            raise StoreError(
                f"There is no vector of {what}: embed what `missing` names, and its questions and summary."
            )
        if len(vectors[id_]) != recipe.dimension:
            raise IndexMismatch(
                f"The vector of {what} has {len(vectors[id_])} numbers, but the index is made for {recipe.dimension} "
                f"({recipe.embedder}). Build it again with the other embedder."
            )
