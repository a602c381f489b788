"""Cuts where the topic changes: where the texts before and after a point are least similar.

The windows are those of TextTiling (Hearst 1997), compared by embeddings with a percentile of the page as threshold,
as LlamaIndex's SemanticSplitterNodeParser does; that one itself cuts through code and tables and knows no lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.types import Chunk, Page, Vector
from ingestion.split.blocks import STACKED, Piece
from ingestion.split.bounds import Limits, Part, bounds
from ingestion.split.chunks import make_chunks
from ingestion.split.tokens import small_pieces

WINDOW = 3
"""Sentences or blocks on each side of a point that are compared."""

_WANTED, _UNWANTED = -0.3, 0.3


@dataclass(frozen=True, slots=True)
class SemanticSplitter:
    """Chunks of `least` to `most` tokens. The `percentile` % of points where a page is least alike are where it's cut."""

    least: int
    most: int
    percentile: int
    abbreviations: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """See `Splitter`."""
        return f"semantic-2/{self.least}-{self.most}/{self.percentile}"

    def windows(self, page: Page) -> Sequence[str]:
        """One text from each sentence or block on."""
        found, _ = small_pieces(page.markdown, self.most, self.abbreviations)
        return [_text(found[at : at + WINDOW]) for at in range(len(found))] if len(found) > 1 else []

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks; only the first or last of a page, or one between long blocks, may be shorter than `least`."""
        found, lengths = small_pieces(page.markdown, self.most, self.abbreviations)
        costs = self._costs(found, vectors) if len(found) > 1 else [0.0] * len(found)
        parts = [Part(length, 1, cost) for length, cost in zip(lengths, costs, strict=True)]
        groups = [found[first:last] for first, last in bounds(parts, Limits(self.most, self.least, shortness=3.0))]
        return make_chunks(page, groups)

    def _costs(self, found: Sequence[Piece], vectors: Sequence[Vector]) -> list[float]:
        """What a break before each piece costs, by how alike the windows before and after it are."""
        matrix = np.asarray(vectors, dtype=np.float32)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
        before = matrix[[max(0, at - WINDOW) for at in range(1, len(found))]]
        alike = np.einsum("ij,ij->i", before, matrix[1:])
        threshold = float(np.percentile(alike, self.percentile))
        costs = [0.0]
        for piece, likeness in zip(found[1:], alike.tolist(), strict=True):
            cost = 2.0 * (likeness - threshold) + (_WANTED if likeness <= threshold else _UNWANTED)
            costs.append(piece.cost if piece.cost >= STACKED else cost)
        return costs


def _text(found: Sequence[Piece]) -> str:
    return "".join((piece.gap if number else "") + piece.text for number, piece in enumerate(found))
