"""A page of the sample, and on how many pages a block must be."""

from __future__ import annotations

from dataclasses import dataclass

from ingestion.convert.boilerplate.leaves import Leaf

FEWEST = 5
"""Pages that must repeat a block at least: fewer say nothing of a site."""

MOST = 0.6
"""The share of pages from which on a block is one of the site."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One page of the sample: its blocks with selectors that find them. `template` is what pages must share to be compared."""

    url: str
    template: str
    leaves: tuple[Leaf, ...]
    selectors: tuple[str, ...]

    @property
    def words(self) -> int:
        """How many words the page has."""
        return sum(leaf.words for leaf in self.leaves)
