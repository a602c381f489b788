"""A draft that writes nothing, for dry runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from app.core.errors import NoIndex, StoreError
from app.core.generation import GenerationInfo, Recipe, SourceRecord
from app.core.types import Chunk, Page, Vector
from app.index.protocols import Generation, Store


class DryRunDraft:
    """See `app.index.protocols.Draft`. It takes no lock, so it also runs beside a real one."""

    def __init__(self, live: Generation | None, pages: Mapping[str, Page]) -> None:
        self._live = live
        self._pages = dict(pages)
        self._rebuilds = not pages
        self._chunks = frozenset(id_ for page in pages.values() for id_ in page.chunk_ids)
        self.changed = False
        """True when a real draft would become a generation."""

    @classmethod
    async def begin(cls, store: Store, recipe: Recipe) -> DryRunDraft:
        """A dry run of what `store.draft` would begin."""
        try:
            live = await store.live()
        except NoIndex:
            return cls(None, {})
        shared = live.info.recipe == recipe
        return cls(live, {page.url: page for page in await live.pages()} if shared else {})

    @property
    def rebuilds(self) -> bool:
        """True when nothing could be shared with the live generation."""
        return self._rebuilds

    async def page_states(self) -> Mapping[str, Page]:
        """The pages as a real draft would have them."""
        return dict(self._pages)

    async def missing(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """Those that would have to be embedded."""
        return tuple(chunk for chunk in chunks if chunk.id not in self._chunks)

    async def put(self, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> None:  # noqa: ARG002
        """Only remembers that something would change."""
        self.changed = True
        self._pages[page.url] = replace(page, markdown="")

    async def remove(self, url: str) -> None:
        """Only remembers that something would change."""
        self.changed |= self._pages.pop(url, None) is not None

    async def touch(self, pages: Iterable[Page]) -> None:
        """Only remembers whether a translation set would change."""
        for page in pages:
            if page.url in self._pages:
                self.changed |= self._pages[page.url].translation_set != page.translation_set
                self._pages[page.url] = page

    async def publish(self, sources: Sequence[SourceRecord] = (), *, supersede: bool = False) -> GenerationInfo:  # noqa: ARG002
        """Never: nothing is there to be published."""
        raise StoreError("A dry run publishes nothing: run it without --dry-run.")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to let go of."""
