"""Blocks that most pages of a site repeat around their own text (banners, breadcrumbs, pagers, feedback), found by comparing pages.

`compare` reads pages and finds the blocks in a worker process, `blocks` takes them from a page. What a run calls is here: it passes the
pages on as they come, so it needn't import what reads them.
"""

import pickle
from collections.abc import Sequence

from app.core.generation import RepeatedBlock
from app.core.language import Vocabulary
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry

FEWEST = 5
"""Pages that must repeat a block at least: fewer say nothing of a site."""


def sampled_page(fetched: Fetched, entry: Entry, words: Vocabulary) -> bytes:
    """What `sampled` tells of the page; empty if that is nothing."""
    from ingestion.convert.boilerplate.compare import sampled

    page = sampled(fetched, entry, words)
    return pickle.dumps(page) if page else b""


def repeated_in(pages: Sequence[bytes]) -> tuple[RepeatedBlock, ...]:
    """The `repeated_blocks` of these pages."""
    from ingestion.convert.boilerplate.compare import repeated_blocks

    return repeated_blocks([pickle.loads(page) for page in pages])  # noqa: S301  # of `sampled_page`
