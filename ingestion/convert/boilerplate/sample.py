"""A page of the sample -> its blocks, to be compared with those of other pages. It runs in a worker process."""

from __future__ import annotations

from lxml.html import HtmlElement

from app.core.language import Vocabulary
from ingestion.convert.boilerplate.leaves import leaves
from ingestion.convert.boilerplate.sampled import Sampled
from ingestion.convert.clean import note_anchors
from ingestion.convert.html import HtmlConverter, content_of, parse
from ingestion.convert.left_out import left_out
from ingestion.convert.raw_markdown import source_of
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.errors import ConversionError


def sampled(fetched: Fetched, entry: Entry, words: Vocabulary) -> Sampled | None:
    """The page's blocks; None for what isn't an HTML page with content. What the source keeps is no block to compare."""
    source = source_of(fetched, entry, words)
    if not HtmlConverter().matches(source):
        return None
    try:
        page = parse(source)
        if left_out(page, source):
            return None
        root, kept, _ = content_of(page, source)
    except ConversionError:
        return None
    note_anchors(root)
    around = "/".join(str(element.tag) for element in reversed([root, *root.iterancestors()]))
    found = [one for one in leaves(root) if one.element not in kept]
    return Sampled(
        source.url,
        f"{page.get('lang', '')} {around}",
        tuple(one.leaf for one in found),
        tuple(_selector(one.element) for one in found),
    )


def _selector(element: HtmlElement) -> str:
    """A CSS selector by the nearest id or class."""
    for near in (element, *element.iterancestors()):
        if identifier := near.get("id"):
            return f"#{identifier}"
        if names := (near.get("class") or "").split():
            return f"{near.tag}.{names[0]}"
    return str(element.tag)
