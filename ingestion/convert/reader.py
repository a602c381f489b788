"""A listed page -> its document: download, conversion, JavaScript where needed, and anchors of raw Markdown."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace

from app.core.language import vocabulary
from app.core.settings import Settings
from ingestion.convert.anchors import Anchors
from ingestion.convert.document import Document
from ingestion.convert.javascript import NeedsJavaScript
from ingestion.convert.prepare import document
from ingestion.convert.raw_markdown import RawMarkdown
from ingestion.crawl.directory import read_file
from ingestion.crawl.documents import read_document
from ingestion.crawl.exchange import ACCEPT_HTML, Fetched, PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.render import Renderer, open_renderer
from ingestion.entry import Entry
from ingestion.errors import ConversionError, PageError
from ingestion.urls import origin, public_url
from ingestion.workers import Workers


@dataclass
class DocumentReader:
    """Downloads pages and converts them. Close it when done.

    `notes` counts messages for the operator about the settings of whole sites.
    """

    fetcher: Fetcher
    workers: Workers
    settings: Settings
    notes: Counter[str] = field(default_factory=Counter)
    _raw: RawMarkdown = field(init=False)
    _renderer: Renderer | None = field(init=False)
    _anchors: dict[str, Anchors] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._words = vocabulary(self.settings.languages, self.settings.prompts)
        self._raw = RawMarkdown(self.fetcher, self.workers, self._words)
        self._renderer = open_renderer(self.settings, self.fetcher)

    async def fetch(self, entry: Entry, etag: str = "", last_modified: str = "") -> Fetched:
        """The page itself, with status 304 where the validators still hold. Raises `PageError`."""
        if entry.given:
            return await asyncio.to_thread(read_document, entry, etag, self.settings.crawl_max_bytes)
        if entry.file:
            return await asyncio.to_thread(read_file, entry, etag, self.settings.crawl_max_bytes)
        return await self._raw.fetch(entry, etag, last_modified)

    async def read(self, entry: Entry, fetched: Fetched) -> tuple[Document, Fetched]:
        """The document and its download: a browser's, where JavaScript makes the page. Raises `ConversionError`."""
        read, fetched = await self._converted(entry, fetched)
        if read.note:
            self.notes[f"{entry.site.url}: {read.note}"] += 1
        if read.raw:
            public = public_url(fetched.url if fetched.redirects else entry.url)
            read = await self._anchors_for(entry).anchored(read, origin(fetched.url), public)
        return read, fetched

    async def close(self) -> None:
        """End the browser, if it was started."""
        if self._renderer is not None:
            await self._renderer.close()

    async def _converted(self, entry: Entry, fetched: Fetched) -> tuple[Document, Fetched]:
        try:
            return await self._raw.document(fetched, entry), fetched
        except NeedsJavaScript as error:
            if entry.is_local:
                raise
            if self._renderer is None:
                raise NeedsJavaScript(f"{error}; DOCS_RENDER=auto with docs-assistant[browser] can read it") from error
        html = await self._renderer.html(fetched.url)
        # validators of the empty shell don't cover the content that scripts load
        made = replace(fetched, body=html.encode(), media_type="text/html", charset="utf-8", etag="", last_modified="")
        return await self._raw.document(made, entry), made

    def _anchors_for(self, entry: Entry) -> Anchors:
        mode = self.settings.anchors if entry.site.anchors == "auto" else entry.site.anchors
        return self._anchors.setdefault(mode, Anchors(mode, self._html, self.workers))

    async def _html(self, url: str) -> Document | None:
        """The HTML form of a page whose Markdown was read; None if it has none."""
        try:
            fetched = await self.fetcher.get(PageRequest(url, accept=ACCEPT_HTML))
            made = await self.workers.run(document, fetched, self._words)
        except (PageError, ConversionError):
            return None
        return None if made.raw else made
