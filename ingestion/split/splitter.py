"""The seam to splitters: a page in, its chunks out. Only computing, so that it can run in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.core.types import Chunk, Page, Vector


class Splitter(Protocol):
    """One way to cut pages. Each of ours keeps sections with their anchors, closes fences and loses no line."""

    @property
    def name(self) -> str:
        """The splitter's name in the recipe: it changes when the same page would get other chunks."""
        ...

    def windows(self, page: Page) -> Sequence[str]:
        """Texts whose vectors `split` needs, in order; none when the text alone decides."""
        ...

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks in order; `vectors` are those of its `windows`."""
        ...
