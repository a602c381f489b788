"""The pages of a sample -> the blocks that most of them repeat."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.generation import RepeatedBlock
from ingestion.convert.boilerplate.around import around, matching
from ingestion.convert.boilerplate.leaves import TITLE, Leaf
from ingestion.convert.boilerplate.link_places import link_places
from ingestion.convert.boilerplate.sampled import FEWEST, MOST, Sampled

STILL = 0.3
"""The share of pages down to which a block that was found earlier stays one of the site."""

MOST_BLOCKS = 1_000
"""Blocks of a site at most: each goes with every page to its conversion, and is stored with the index."""

_SAME_SECTION = 0.5
"""A block that is more often below the same heading belongs to that section."""

_CONTENT = 0.5
"""A text that is more than this share of its pages is what they are about."""


def repeated_blocks(pages: Sequence[Sampled], known: Iterable[RepeatedBlock] = ()) -> tuple[RepeatedBlock, ...]:
    """What most pages of a template repeat around their own text, whatever the order of the pages.

    What is `known` stays as long as it isn't rare, so that a few pages more or less change nothing.
    """
    before = frozenset(known)
    templates: dict[str, list[Sampled]] = defaultdict(list)
    seen: set[tuple[str, ...]] = set()
    for page in sorted(pages, key=lambda page: page.url):
        keys = tuple(leaf.key for leaf in page.leaves if not leaf.is_title)
        if keys not in seen:  # the same page at many addresses, such as a login, says nothing of the others
            templates[page.template].append(page)
        seen.add(keys)
    found: dict[RepeatedBlock, None] = {}
    for _, group in sorted(templates.items()):
        if len(group) >= FEWEST:
            found |= dict.fromkeys(_Group(group, before).repeated())
    most = sorted(found, key=lambda one: (-one.share, one.kind, one.key))[:MOST_BLOCKS]
    return tuple(sorted(most, key=lambda one: (one.kind, one.key)))


@dataclass(slots=True)
class _Group:
    """Pages of one template."""

    pages: Sequence[Sampled]
    known: frozenset[RepeatedBlock]

    def repeated(self) -> list[RepeatedBlock]:
        texts = self._often(
            Counter(key for page in self.pages for key in {leaf.key for leaf in page.leaves if _may(leaf)}), "text"
        )
        places = self._often(link_places(self.pages, texts), "links")
        seen: dict[RepeatedBlock, dict[str, tuple[Sampled, int]]] = defaultdict(dict)
        for page in self.pages:
            edges = around(page.leaves, matching(texts, places))
            for number in sorted(edges.all):
                key, place = page.leaves[number].key, edges.place(page.leaves, number)
                if key in texts or place in places:
                    one = RepeatedBlock("text", key) if key in texts else RepeatedBlock("links", place)
                    seen[one].setdefault(page.url, (page, number))
        found = ((one, list(places.values())) for one, places in seen.items())
        return [self._described(one, places) for one, places in found if self._is_of_site(one, places)]

    def _often(self, counted: Counter[str], kind: str) -> frozenset[str]:
        return frozenset(key for key, count in counted.items() if count >= self._least(RepeatedBlock(kind, key)))

    def _least(self, one: RepeatedBlock) -> int:
        return max(FEWEST, math.ceil((STILL if one in self.known else MOST) * len(self.pages)))

    def _is_of_site(self, one: RepeatedBlock, places: Sequence[tuple[Sampled, int]]) -> bool:
        if len(places) < self._least(one):
            return False
        shares = (0 if page.leaves[n].links else page.leaves[n].words / page.words for page, n in places)
        if statistics.median(shares) > _CONTENT:
            return False
        under = Counter(page.leaves[number].under for page, number in places)
        del under[""], under[TITLE]
        return not under or under.most_common(1)[0][1] <= _SAME_SECTION * len(places)

    def _described(self, one: RepeatedBlock, places: Sequence[tuple[Sampled, int]]) -> RepeatedBlock:
        page, number = places[0]
        share = round(100 * len(places) / len(self.pages))
        return RepeatedBlock(one.kind, one.key, page.leaves[number].text, page.selectors[number], share)


def _may(leaf: Leaf) -> bool:
    return bool(leaf.key) and not leaf.code and not leaf.is_section
