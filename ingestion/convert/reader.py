"""A listed page -> its document: download, conversion, JavaScript where needed, and anchors of raw Markdown."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace

from app.core.language import Vocabulary, vocabulary
from app.core.settings import Settings
from ingestion.convert.anchors import AnchorMode, Anchors
from ingestion.convert.document import Document
from ingestion.convert.javascript import NeedsJavaScript
from ingestion.convert.raw_markdown import RawMarkdown
from ingestion.convert.samples import Samples
from ingestion.crawl.directory import read_file
from ingestion.crawl.documents import read_document
from ingestion.crawl.downloads import Downloads
from ingestion.crawl.exchange import Fetched, PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.openapi import openapi_request
from ingestion.crawl.render import Renderer, open_renderer
from ingestion.entry import Entry
from ingestion.errors import PageError
from ingestion.urls import origin, public_url
from ingestion.workers import Workers


@dataclass
class DocumentReader:
    """Downloads pages and converts them. Close it when done.

    `samples` are the pages that decide which form of a site is read. `notes` counts messages for the operator about the settings of whole sites.
    """

    fetcher: Fetcher
    workers: Workers
    settings: Settings
    samples: Samples = field(default_factory=Samples)
    notes: Counter[str] = field(default_factory=Counter)
    words: Vocabulary = field(init=False)
    _raw: RawMarkdown = field(init=False)
    _renderer: Renderer | None = field(init=False)
    _anchors: dict[str, Anchors] = field(default_factory=dict)
    _early: Downloads = field(default_factory=Downloads)

    def __post_init__(self) -> None:
        self.words = vocabulary(self.settings.languages, self.settings.prompts)
        self._raw = RawMarkdown(self.fetcher, self.workers, self.words, self.notes, self.samples, self._learn)
        self._renderer = open_renderer(self.settings, self.fetcher)

    async def fetch(self, entry: Entry, etag: str = "", last_modified: str = "") -> Fetched:
        """The page itself, with status 304 where the validators still hold. Raises `PageError`."""
        if early := self._early.take(PageRequest(entry.url, etag=etag, last_modified=last_modified)):
            return early
        if entry.given:
            return await asyncio.to_thread(read_document, entry, etag, self.settings.crawl_max_bytes)
        if entry.file:
            return await asyncio.to_thread(read_file, entry, etag, self.settings.crawl_max_bytes)
        if entry.site.openapi:
            return await self.fetcher.get(openapi_request(entry.url, etag, last_modified))
        return await self._raw.fetch(entry, etag, last_modified)

    async def fetch_early(self, entry: Entry, etag: str = "", last_modified: str = "") -> Fetched:
        """What `fetch` will give later, without another request. Raises `PageError`."""
        try:
            fetched = await self.fetch(entry, etag, last_modified)
            if await self._raw.is_worse(fetched, entry):
                fetched = await self.fetch(entry, etag, last_modified)
        except PageError as error:
            self._early.keep(entry.url, error)
            raise
        self._early.keep(entry.url, fetched)
        return fetched

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
        """End the browser, if it was started, and delete what was fetched in vain."""
        self._early.close()
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
        given = entry.site.anchors
        mode: AnchorMode = given if given in ("github", "mkdocs", "none") else self.settings.anchors  # type: ignore[assignment]
        return self._anchors.setdefault(mode, Anchors(mode, self._html, self.workers))

    async def _html(self, url: str) -> Document | None:
        """The HTML form of a page whose Markdown was read; None if it has none."""
        page = await self._raw.html(url)
        return page.document if page is not None else None

    async def _learn(self, entry: Entry, raw: Document, page: Document) -> None:
        await self._anchors_for(entry).learn(origin(entry.url), raw, page)
