"""Places where pages of a site have links that only lead around in it: breadcrumbs, pagers, lists of the site's pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from urllib.parse import urljoin, urlsplit

from ingestion.convert.boilerplate.around import around
from ingestion.convert.boilerplate.leaves import Leaf
from ingestion.convert.boilerplate.sampled import FEWEST, MOST, Sampled

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
    """(address, text) of the block's links."""
    return [(_joined(page.url, href), text) for href, text, _ in leaf.links]


def _joined(url: str, href: str) -> str:
    try:
        return urljoin(url, href)
    except ValueError:  # not a valid address
        return ""


def _is_above(target: str, url: str) -> bool:
    """True for the page itself and for those of the folders around it."""
    folder = target.partition("#")[0].partition("?")[0]
    folder = folder[: folder.rfind("/") + 1] if folder.rpartition("/")[2].startswith("index") else folder
    return url == folder or url.startswith(folder.rstrip("/") + "/")
