"""The pages of a sample -> the blocks that most of them repeat. It runs in a worker process."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lxml.html import HtmlElement

from app.core.generation import RepeatedBlock
from app.core.language import Vocabulary
from ingestion.convert.boilerplate import FEWEST
from ingestion.convert.boilerplate.blocks import TITLE, Leaf, around, leaves
from ingestion.convert.html.clean import note_anchors
from ingestion.convert.html.page import HtmlConverter, content_of, left_out, parse
from ingestion.convert.reader import source_of
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.errors import ConversionError

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
        """The number of words of the page."""
        return sum(leaf.words for leaf in self.leaves)


def sampled(fetched: Fetched, entry: Entry, words: Vocabulary) -> Sampled | None:
    """The page's blocks; None for what isn't an HTML page with content. What the source keeps is no block to compare."""
    source = source_of(fetched, entry, words)
    if not HtmlConverter().matches(source):
        return None
    try:
        page = parse(source)
        if left_out(page, source):
            return None
        root, kept_elements, _ = content_of(page, source)
    except ConversionError:
        return None
    note_anchors(root)
    around = "/".join(str(element.tag) for element in reversed([root, *root.iterancestors()]))
    blocks = [block for block in leaves(root) if block.element not in kept_elements]
    return Sampled(
        source.url,
        f"{page.get('lang', '')} {around}",
        tuple(block.leaf for block in blocks),
        tuple(_selector(block.element) for block in blocks),
    )


def _selector(element: HtmlElement) -> str:
    for near in (element, *element.iterancestors()):
        if identifier := near.get("id"):
            return f"#{identifier}"
        if names := (near.get("class") or "").split():
            return f"{near.tag}.{names[0]}"
    return str(element.tag)


MOST_BLOCKS = 1_000
"""Blocks of a site at most: each goes with every page to its conversion, and is stored with the index."""

_SAME_SECTION = 0.5
"""A block that is more often below the same heading belongs to that section."""

_CONTENT = 0.5
"""A text that is more than this share of its pages is what they are about."""


def repeated_blocks(pages: Sequence[Sampled]) -> tuple[RepeatedBlock, ...]:
    """Returns the blocks that most pages of a template repeat around their own text, whatever the order of the pages."""
    templates: dict[str, list[Sampled]] = defaultdict(list)
    seen: set[tuple[str, ...]] = set()
    for page in sorted(pages, key=lambda page: page.url):
        keys = tuple(leaf.key for leaf in page.leaves if not leaf.is_title)
        if keys not in seen:  # the same page at many addresses, such as a login, says nothing of the others
            templates[page.template].append(page)
        seen.add(keys)
    repeated: dict[RepeatedBlock, None] = {}
    for _, group in sorted(templates.items()):
        if len(group) >= FEWEST:
            repeated |= dict.fromkeys(_of_template(group))
    most = sorted(repeated, key=lambda one: (-one.share, one.kind, one.key))[:MOST_BLOCKS]
    return tuple(sorted(most, key=lambda one: (one.kind, one.key)))


def _of_template(pages: Sequence[Sampled]) -> list[RepeatedBlock]:
    least = max(FEWEST, math.ceil(MOST * len(pages)))
    keys = ({leaf.key for leaf in page.leaves if not leaf.code and not leaf.is_section} for page in pages)
    texts = {key for key, count in Counter(key for of_page in keys for key in of_page).items() if count >= least}
    seen: dict[RepeatedBlock, dict[str, tuple[Sampled, int]]] = defaultdict(dict)
    for page in pages:
        for number, place in around(page.leaves, lambda leaf: leaf.key in texts or leaf.links).items():
            key = page.leaves[number].key
            block = RepeatedBlock("text", key) if key in texts else RepeatedBlock("links", place)
            seen[block].setdefault(page.url, (page, number))
    found = ((block, list(on.values())) for block, on in seen.items() if len(on) >= least)
    return [_described(block, on, len(pages)) for block, on in found if _is_of_site(on)]


def _is_of_site(places: Sequence[tuple[Sampled, int]]) -> bool:
    shares = (0 if page.leaves[n].links else page.leaves[n].words / page.words for page, n in places)
    if statistics.median(shares) > _CONTENT:
        return False
    under = Counter(page.leaves[number].under for page, number in places)
    del under[""], under[TITLE]
    return not under or under.most_common(1)[0][1] <= _SAME_SECTION * len(places)


def _described(one: RepeatedBlock, places: Sequence[tuple[Sampled, int]], pages: int) -> RepeatedBlock:
    page, number = places[0]
    share = round(100 * len(places) / pages)
    return RepeatedBlock(one.kind, one.key, page.leaves[number].text, page.selectors[number], share)
