"""A page without the blocks that most pages of its site repeat."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lxml.html import HtmlElement

from app.core.generation import RepeatedBlock
from ingestion.convert.boilerplate.around import to_remove
from ingestion.convert.boilerplate.leaves import leaves


def remove_repeated(root: HtmlElement, known: Sequence[RepeatedBlock], kept: Collection[HtmlElement] = ()) -> None:
    """Drop the `known` blocks from around the page's own text, except those that are `kept`. Headings have their `data-anchor`."""
    if not known:
        return
    found = leaves(root, {one.key.partition(" ")[2] for one in known if one.kind == "links"})
    for number in to_remove([one.leaf for one in found], known):
        if found[number].element not in kept:
            found[number].drop()
