"""The pages of a sample -> the blocks that most of them repeat. It runs in a worker process."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from lxml.html import HtmlElement

from app.core.generation import RepeatedBlock
from app.core.language import Vocabulary
from ingestion.convert.boilerplate import FEWEST
from ingestion.convert.boilerplate.blocks import TITLE, Leaf, around, leaves, matching
from ingestion.convert.html.clean import note_anchors
from ingestion.convert.html.page import HtmlConverter, content_of, left_out, parse
from ingestion.convert.reader import source_of
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.errors import ConversionError
from ingestion.urls import joined

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


_PAGER = 3
"""Links of a pager at most, in one block or in several."""

_MOST_ALIKE = 3
"""Blocks of links that elements of the same kind hold on a page: where there are more, they are the page's own."""

Link = tuple[str, str]


def link_places(pages: Sequence[Sampled], texts: Collection[str]) -> Counter[str]:
    """On how many pages each place has such links; `texts` are the keys of blocks that are on most pages."""
    counted = Counter(
        link for page in pages for link in {link for leaf in page.leaves for link in _targets(page, leaf)}
    )
    common = {link for link, count in counted.items() if count >= max(FEWEST, MOST * len(pages))}
    return Counter(place for page in pages for place in set(_places(page, texts, common)))


def _places(page: Sampled, texts: Collection[str], common: Collection[Link]) -> Iterator[str]:
    blocks = Counter(leaf.path for leaf in page.leaves if leaf.links)
    leading = {
        number
        for number, leaf in enumerate(page.leaves)
        if leaf.links and blocks[leaf.path] <= _MOST_ALIKE and not (number and page.leaves[number - 1].own)
        if _leads_around(page, leaf, common)
    }
    ids = {id(page.leaves[number]) for number in leading}
    edges = around(page.leaves, lambda leaf: leaf.key in texts or id(leaf) in ids or _is_pager(page, leaf))
    for number in sorted(edges.all):
        leaf = page.leaves[number]
        beside = number in edges.before or (number and page.leaves[number - 1].own)
        if number in leading or (_is_pager(page, leaf) and not beside):
            yield edges.place(page.leaves, number)


def _leads_around(page: Sampled, leaf: Leaf, common: Collection[Link]) -> bool:
    """True for links to the neighbours by their `rel`, to what is above the page, and to what most pages link to."""
    if all({"prev", "next"} & set(rel.lower().split()) for _, _, rel in leaf.links):
        return True
    links = _targets(page, leaf)
    return all(_is_above(target, page.url) for target, _ in links) or 2 * sum(link in common for link in links) > len(
        links
    )


def _is_pager(page: Sampled, leaf: Leaf) -> bool:
    here = urlsplit(page.url).netloc
    links = _targets(page, leaf)
    return 0 < len(links) <= _PAGER and all(
        urlsplit(target).netloc == here and not target.startswith(f"{page.url}#") for target, _ in links
    )


def _targets(page: Sampled, leaf: Leaf) -> list[Link]:
    return [(joined(page.url, href), text) for href, text, _ in leaf.links]


def _is_above(target: str, url: str) -> bool:
    """True for the page itself and for those of the folders around it."""
    folder = target.partition("#")[0].partition("?")[0]
    folder = folder[: folder.rfind("/") + 1] if folder.rpartition("/")[2].startswith("index") else folder
    return url == folder or url.startswith(folder.rstrip("/") + "/")


STILL = 0.3
"""The share of pages down to which a block that was found earlier stays one of the site."""

MOST_BLOCKS = 1_000
"""Blocks of a site at most: each goes with every page to its conversion, and is stored with the index."""

_SAME_SECTION = 0.5
"""A block that is more often below the same heading belongs to that section."""

_CONTENT = 0.5
"""A text that is more than this share of its pages is what they are about."""


def repeated_blocks(pages: Sequence[Sampled], known: Iterable[RepeatedBlock] = ()) -> tuple[RepeatedBlock, ...]:
    """Returns the blocks that most pages of a template repeat around their own text, whatever the order of the pages.

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
    repeated: dict[RepeatedBlock, None] = {}
    for _, group in sorted(templates.items()):
        if len(group) >= FEWEST:
            repeated |= dict.fromkeys(_Group(group, before).repeated())
    most = sorted(repeated, key=lambda one: (-one.share, one.kind, one.key))[:MOST_BLOCKS]
    return tuple(sorted(most, key=lambda one: (one.kind, one.key)))


@dataclass(slots=True)
class _Group:
    pages: Sequence[Sampled]
    known: frozenset[RepeatedBlock]

    def repeated(self) -> list[RepeatedBlock]:
        keys = ({leaf.key for leaf in page.leaves if not leaf.code and not leaf.is_section} for page in self.pages)
        texts = self._often(Counter(key for page_keys in keys for key in page_keys if key), "text")
        places = self._often(link_places(self.pages, texts), "links")
        seen: dict[RepeatedBlock, dict[str, tuple[Sampled, int]]] = defaultdict(dict)
        for page in self.pages:
            edges = around(page.leaves, matching(texts, places))
            for number in sorted(edges.all):
                key, place = page.leaves[number].key, edges.place(page.leaves, number)
                if key in texts or place in places:
                    block = RepeatedBlock("text", key) if key in texts else RepeatedBlock("links", place)
                    seen[block].setdefault(page.url, (page, number))
        candidates = ((block, list(places.values())) for block, places in seen.items())
        return [self._described(block, places) for block, places in candidates if self._is_of_site(block, places)]

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
