"""Cutting along headings, then paragraphs, then sentences; each chunk as full as its sections allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.types import Chunk, Page, Vector
from ingestion.split.blocks import pieces
from ingestion.split.bounds import Limits, Part, bounds
from ingestion.split.chunks import make_chunks


@dataclass(frozen=True, slots=True)
class MarkdownSplitter:
    """Chunks of at most `size` characters."""

    size: int
    abbreviations: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """See `Splitter`."""
        return f"markdown-5/{self.size}"

    def windows(self, page: Page) -> Sequence[str]:
        """None: the text alone decides."""
        del page
        return ()

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks, none longer than the size but for single rows of tables."""
        del vectors
        found = pieces(page.markdown, self.size, abbreviations=self.abbreviations)
        parts = [Part(len(piece.text), len(piece.gap), piece.cost) for piece in found]
        groups = [found[first:last] for first, last in bounds(parts, self._limits)]
        return make_chunks(page, groups)

    @property
    def _limits(self) -> Limits:
        """Above half of the size the length doesn't matter, so that breaks fall where sections end."""
        return Limits(self.size, self.size / 2, shortness=1.0)
