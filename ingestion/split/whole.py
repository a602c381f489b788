"""No cutting: one chunk is the whole page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.types import Chunk, Page, Vector
from ingestion.split.blocks import pieces
from ingestion.split.chunks import make_chunks


@dataclass(frozen=True, slots=True)
class PageSplitter:
    """One chunk per page with all its sections. Embedders see only as much of it as they take."""

    @property
    def name(self) -> str:
        """See `Splitter`."""
        return "page-2"

    def windows(self, page: Page) -> Sequence[str]:
        """None: the text alone decides."""
        del page
        return ()

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """One chunk; none for a page without text."""
        del vectors
        found = pieces(page.markdown, max(1, len(page.markdown)))
        return make_chunks(page, [found] if found else [])
