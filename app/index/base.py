"""The seam to a store: `Store` keeps generations, `Generation` is a pinned one to read, `Draft` the next one.

Publishing moves one pointer, atomically; unchanged chunks are not copied. Readers hold one `Generation`
from start to end and never see a half-built one. Every method is async; failures are `StoreError`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from app.core.types import Chunk, GenerationInfo, Legs, Page, Query, Recipe, Vector


class Generation(Protocol):
    """One published state of the index, pinned: later publishing doesn't change what it returns."""

    @property
    def info(self) -> GenerationInfo:
        """What is known of this generation."""
        ...

    async def search(self, query: Query) -> Legs:
        """Both legs apart, best first, at most `query.depth` each, with raw scores; filters apply to both.

        Where pages have summaries, these are searched too, and the pages' chunks are lifted (`store/lift.py`).
        """
        ...

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks of these ids in their order; an id that this generation lacks is left out."""
        ...

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """How many chunks have each of these tokens (as `app.text.analysis` makes them); 0 for an unknown one."""
        ...

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown, by its public address."""
        ...

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""
        ...


class Draft(Protocol):
    """The next generation while it is written. Leaving the context without `publish` discards it."""

    @property
    def rebuilds(self) -> bool:
        """True when nothing can be shared with the live generation (other recipe, or none is live)."""
        ...

    async def page_states(self) -> Mapping[str, Page]:
        """The pages that the draft starts from, by address, without Markdown; empty when it rebuilds."""
        ...

    async def missing(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """Those whose id the draft's base lacks: the ones that `put` needs vectors for."""
        ...

    async def put(self, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> None:
        """Make these the page's chunks, in this order; `vectors` by chunk id, for those `missing` named.

        A page with a `summary_text` needs its vector too, by the page's address.

        A chunk that is there already unchanged is not written again; one whose shown fields (sections,
        title, dates) changed is rewritten with the vector it has; others of the page leave the draft.
        """
        ...

    async def remove(self, url: str) -> None:
        """The page and its chunks leave the draft; an unknown address is no error."""
        ...

    async def touch(self, pages: Iterable[Page]) -> None:
        """Replace the records of these pages (etag, last_ok, status ...) and write no chunk.

        `chunk_ids` and `markdown` of the given pages are ignored: the stored ones stay.
        """
        ...

    async def publish(self) -> GenerationInfo:
        """Make the draft live in one atomic step, and drop generations that are no longer kept.

        A draft in which nothing was put or removed makes no new generation: touched records are
        kept, and the live generation's info comes back.
        """
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Store(Protocol):
    """An index with its generations."""

    async def live(self) -> Generation:
        """The published generation, pinned. Raises `NoIndex` when nothing was published yet. Cheap: called per question."""
        ...

    async def draft(self, recipe: Recipe, *, rebuild: bool = False) -> Draft:
        """Begin the next generation, first clearing what an aborted run left. Use it as `async with await store.draft(...)`.

        Another recipe than the live one's means a full rebuild beside the live generation. So does `rebuild`, which also
        works where nothing that is there can be read, and keeps no earlier generation once it is published. Raises
        `StoreBusy` while another draft is written, in any process. A store may let two drafts begin as long as
        nothing was written: the second to write then raises it, so that it never publishes over the first.
        """
        ...

    async def generations(self) -> tuple[GenerationInfo, ...]:
        """Those kept, newest first; the live one is among them."""
        ...

    async def rollback(self) -> GenerationInfo:
        """Make the generation before the live one live again. Raises `NoIndex` when none is kept."""
        ...

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
        ...
