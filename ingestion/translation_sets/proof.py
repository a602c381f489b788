"""Whether the content of two pages says that one is a translation of the other: their marks, rare ones weighing most."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.core.types import Page
from app.text.marks import KEPT, hashed

RARE = 20  # pages of a language: a mark that more of them have finds no candidate
LOOKED_UP = 60  # of the rarest marks of a page
COMPARED = 3  # candidates of a page

SOME_WEIGHT, SOME_SHARE = 2.0, 0.2
"""What two pages need to have in common whose addresses say already that they belong together."""

MUCH_WEIGHT, CLEARLY = 6.0, 0.6
"""What others need, and the share of it that a second candidate may have at most."""

ENOUGH, HARDLY = 5.0, 0.05
"""Marks on both pages, by weight, from which on it says something that they have hardly one in common."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """What two pages have in common: the `weight` of it, its `share` (0..1) of all, and the weight of the lesser page."""

    weight: float
    share: float
    least: float

    @property
    def fits(self) -> bool:
        """Whether it proves what the addresses say."""
        return self.weight >= SOME_WEIGHT and self.share >= SOME_SHARE

    @property
    def proves(self) -> bool:
        """Whether it is enough by itself."""
        return self.weight >= MUCH_WEIGHT and self.share >= SOME_SHARE

    @property
    def contradicts(self) -> bool:
        """Whether it disproves what the site declares."""
        return self.least >= ENOUGH and self.share < HARDLY


class Proof:
    """Compares pages by their fingerprints. A mark weighs the less the more pages of a language have it."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._marks = {page.url: hashed(page.fingerprint) for page in pages}
        self._last = {url: max(marks) if len(marks) >= KEPT else math.inf for url, marks in self._marks.items()}
        self._pages = Counter(page.language for page in pages)
        self._with: dict[str, Counter[int]] = defaultdict(Counter)
        for page in pages:
            self._with[page.language].update(self._marks[page.url])

    def likeness(self, one: Page, other: Page) -> Likeness:
        """What the two have in common. Of long pages only the marks below the last that both have kept are compared."""
        last = min(self._last[one.url], self._last[other.url])
        first, second = ({mark for mark in self._marks[page.url] if mark <= last} for page in (one, other))
        weight = sum(
            min(self._rarity(mark, one.language), self._rarity(mark, other.language)) for mark in first & second
        )
        whole = sum(self._rarity(mark, one.language) for mark in first)
        other_whole = sum(self._rarity(mark, other.language) for mark in second)
        root = math.sqrt(whole * other_whole)
        return Likeness(weight, weight / root if root else 0.0, min(whole, other_whole))

    def _rarity(self, mark: int, language: str) -> float:
        return math.log((self._pages[language] + 1) / (self._with[language][mark] or 1))

    def matches(self, pages: Sequence[Page], others: Sequence[Page]) -> Iterator[tuple[Page, Page, Likeness]]:
        """The pairs that belong together by their content alone: clearly so, seen from either side."""
        forth, back = self._best(pages, others), self._best(others, pages)
        for page in pages:
            other, likeness = forth.get(page.url, (None, None))
            if other and likeness and back.get(other.url, (None,))[0] is page:
                yield page, other, likeness

    def _best(self, pages: Sequence[Page], others: Sequence[Page]) -> dict[str, tuple[Page, Likeness]]:
        """By address, the one of the others that is clearly the most like it; pages without such a one are left out."""
        having: dict[int, list[Page]] = defaultdict(list)
        for other in others:
            for mark in self._rarest(other):
                having[mark].append(other)
        found: dict[str, tuple[Page, Likeness]] = {}
        for page in pages:
            near = [(other, self.likeness(page, other)) for other in self._candidates(page, having)]
            near.sort(key=lambda one: (-one[1].share, one[0].url))
            if near and near[0][1].proves and all(two.share <= CLEARLY * near[0][1].share for _, two in near[1:2]):
                found[page.url] = near[0]
        return found

    def _candidates(self, page: Page, having: Mapping[int, Sequence[Page]]) -> list[Page]:
        """Those with most of the page's rare marks."""
        weights: defaultdict[str, float] = defaultdict(float)
        pages: dict[str, Page] = {}
        for mark in self._rarest(page):
            for other in having.get(mark, ()):
                weights[other.url] += self._rarity(mark, page.language)
                pages[other.url] = other
        return [pages[url] for url in sorted(weights, key=lambda url: (-weights[url], url))[:COMPARED]]

    def _rarest(self, page: Page) -> list[int]:
        with_mark = self._with[page.language]
        rare = [mark for mark in self._marks[page.url] if with_mark[mark] <= RARE]
        return sorted(rare, key=lambda mark: (with_mark[mark], mark))[:LOOKED_UP]
