"""Where blocks that most pages of a site repeat are on a page: around its own text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from app.core.generation import RepeatedBlock
from ingestion.convert.boilerplate.leaves import Leaf

LABEL = 3
"""Words of a label such as "Parameters", which belongs to the block after it."""

SURE = 4
"""From so many words on, a known text is removed wherever it is on a page."""

_ASIDE = 0.3
"""The largest share of a page's words beside the element with its headings."""


Test = Callable[[Leaf], bool]


class Around(NamedTuple):
    """The numbers of repeated blocks above the page's heading, between it and the page's own text, and after that."""

    above: frozenset[int]
    before: frozenset[int]
    after: frozenset[int]

    @property
    def all(self) -> frozenset[int]:
        """All of them."""
        return self.above | self.before | self.after

    def place(self, page: Sequence[Leaf], number: int) -> str:
        """Where a block is: the same block of other pages is at the same place. Empty in the page's own text."""
        region = next((name for name in self._fields if number in getattr(self, name)), "")
        return region and f"{region} {page[number].path}"


def around(page: Sequence[Leaf], is_repeated: Test) -> Around:
    """Which blocks are repeated ones, but only around the page's own text."""
    passed = _passable(page, is_repeated)
    begin = next((number for number, leaf in enumerate(page) if leaf.is_title), -1) + 1
    end = next((number for number in range(begin, len(page)) if not passed(page[number])), len(page))
    last = next((number for number in range(len(page) - 1, end - 1, -1) if not passed(page[number])), end - 1)
    repeated = frozenset(number for number, leaf in enumerate(page) if is_repeated(leaf))
    before = repeated.intersection(range(begin, end))
    if begin < end < len(page) and _is_label(page[end - 1], page[end]):
        before -= {end - 1}
    return Around(repeated.intersection(range(begin)), before, repeated.intersection(range(last + 1, len(page))))


def _passable(page: Sequence[Leaf], is_repeated: Test) -> Test:
    """Whether the page's own text hasn't begun with this block: dates, and blocks beside the element with the headings."""
    aside = sum(leaf.words for leaf in page if not leaf.under and not leaf.heading)
    beside = aside <= _ASIDE * sum(leaf.words for leaf in page)

    def test(leaf: Leaf) -> bool:
        if leaf.is_section:
            return False
        return is_repeated(leaf) or leaf.is_date or (beside and not leaf.under and not leaf.heading)

    return test


def _is_label(leaf: Leaf, following: Leaf) -> bool:
    same = leaf.path.rpartition("/")[0] == following.path.rpartition("/")[0]
    return same and leaf.words <= LABEL and not following.is_section


def matching(texts: Collection[str], places: Collection[str]) -> Test:
    """Whether a block has one of these texts, or links at one of these places, as far as that doesn't depend on other blocks."""
    paths = {place.partition(" ")[2] for place in places}
    return lambda leaf: leaf.key in texts or bool(leaf.links and leaf.path in paths)


def to_remove(page: Sequence[Leaf], known: Sequence[RepeatedBlock]) -> set[int]:
    """The numbers of the page's blocks that are known to repeat."""
    texts, places = (frozenset(one.key for one in known if one.kind == kind) for kind in ("text", "links"))
    is_known = matching(texts, places)
    hits = [number for number, leaf in enumerate(page) if is_known(leaf)]
    if not hits:
        return set()
    edges = around(page, is_known)
    return {
        number
        for number in hits
        if (page[number].key in texts and (number in edges.all or _is_sure(page[number])))
        or edges.place(page, number) in places
    }


def _is_sure(leaf: Leaf) -> bool:
    return leaf.words >= SURE and not leaf.heading
