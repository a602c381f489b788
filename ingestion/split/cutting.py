"""What the worker processes compute for one page. It imports no models, so that processes start fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.core.settings import Settings
from app.core.types import Chunk, Page
from ingestion.convert.document import Document
from ingestion.convert.prepare import Prepared, prepare
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.split import Splitter
from ingestion.split.plain_text import plain_text


def prepare_and_cut(  # one call to another process instead of two
    splitter: Splitter, known_hash: str, document: Document, fetched: Fetched, entry: Entry, settings: Settings
) -> Prepared:
    """The page, with chunks when its text is not the known one and cutting it needs no vectors."""
    made = prepare(document, fetched, entry, settings)
    if made.page.hash == known_hash or splitter.windows(made.page):
        return made
    chunks = splitter.split(made.page)
    return replace(made, page=with_plain_text(made.page, chunks), chunks=chunks)


def with_plain_text(page: Page, chunks: Sequence[Chunk]) -> Page:
    """The page with its plain text, in which these chunks have their places."""
    return replace(page, plain=plain_text(page.markdown, chunks))


def windows_or_chunks(splitter: Splitter, page: Page) -> tuple[Sequence[str], tuple[Chunk, ...]]:
    """The texts to embed first, or the chunks where there are none."""
    windows = splitter.windows(page)
    return windows, () if windows else splitter.split(page)
