"""A documentation site as a LlamaIndex reader, for programs that use LlamaIndex; a run reads its pages by the same parts."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from app.core.log_message import LogMessage
from app.core.settings import Settings
from app.models.loop_thread import LoopThread
from ingestion.convert.prepare import prepare
from ingestion.convert.reader import PageLoader
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.listing import list_pages, signed_in
from ingestion.entry import Entry, Listing
from ingestion.errors import is_of_page
from ingestion.sources import Source, as_sources
from ingestion.urls import stem
from ingestion.workers import Workers

log = logging.getLogger("ingestion")


class DocsSiteReader(BaseReader):  # type: ignore[misc]  # LlamaIndex isn't typed
    """Reads the pages of documentation sites as clean Markdown: navigation and other blocks around the text are dropped, headings keep
    their anchors as `{#id}`.

    `sites` are addresses of sitemaps or sites, names of TOML files with sources, or `Source`s. A document's id is the address of its page; its metadata has
    `url`, `title`, `language`, `collection`, `published` and `modified`, where these are known. A page that can't be read is left out, and the log says why.
    Raises `SettingsError`, and `SitemapError` for a site that can't be listed.
    """

    def __init__(self, *sites: str | Source, settings: Settings | None = None) -> None:
        self._sites, self._settings = sites, settings or Settings.load()
        self._loop = LoopThread(self, None)

    def lazy_load_data(self, *_: Any, **__: Any) -> Iterable[Document]:
        """The documents, each read when it is asked for."""
        return self._loop.each(self.documents())

    async def aload_data(self, *_: Any, **__: Any) -> list[Document]:
        """All documents."""
        async with aclosing(self.documents()) as documents:
            return [document async for document in documents]

    async def documents(self) -> AsyncGenerator[Document, None]:
        """The documents, in the order of the sitemaps."""
        async with self._listed() as (listing, loader):
            for entry in listing.entries:
                try:
                    with loader.workers.page(entry.url):
                        yield await self._document(entry, loader)
                except Exception as error:
                    if not is_of_page(error):
                        raise
                    log.warning(LogMessage("page left out", url=entry.url, error=error))

    async def _document(self, entry: Entry, loader: PageLoader) -> Document:
        document, fetched = await loader.read(entry, await loader.fetch(entry))
        settings = entry.site.within(self._settings)
        page = (await loader.workers.run(prepare, document, fetched, entry.without_text(), settings)).page
        facts = ("url", "title", "language", "collection", "published", "modified")
        told = {name: fact for name in facts if (fact := getattr(page, name))}
        return Document(id_=page.url, text=page.markdown, metadata=told)

    @asynccontextmanager
    async def _listed(self) -> AsyncIterator[tuple[Listing, PageLoader]]:
        settings = self._settings
        async with Fetcher(settings) as client, Workers(page_seconds=settings.tuning.page_seconds) as workers:
            listing = await list_pages(signed_in(client, as_sources(self._sites)), client, workers)
            loader = PageLoader(client, workers, settings, frozenset(stem(one.address) for one in listing.entries))
            try:
                yield listing, loader
            finally:
                await loader.close()
