"""What a run starts from: the pages that the live generation has, and what becomes of those that it doesn't read."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.errors import NoIndex, StoreError, StoreUnavailable
from app.core.settings import Settings
from app.core.types import Page
from app.index.protocols import Draft, Generation, Store
from ingestion.convert.addresses import own_address
from ingestion.convert.prepare import Prepared
from ingestion.convert.workers import Workers
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.sitemap import Entry
from ingestion.publish.change import Change
from ingestion.publish.embed import Embedding
from ingestion.publish.write import Writer
from ingestion.read import Reader
from ingestion.report import PageReport, Report

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Base:
    """What the run starts from. `rebuilds` when the draft can't share the live generation: all must be put anew."""

    states: Mapping[str, Page]
    rebuilds: bool
    live: Generation | None

    @classmethod
    async def read(cls, draft: Draft, store: Store) -> Base:
        """What this draft and the live generation of its store know."""
        try:
            live = await store.live()
            if not draft.rebuilds:
                return cls(await draft.page_states(), rebuilds=False, live=live)
            return cls({page.url: page for page in await live.pages()}, rebuilds=True, live=live)
        except NoIndex:
            return cls({}, rebuilds=True, live=None)
        except StoreUnavailable:
            raise
        except StoreError as error:
            if not draft.rebuilds:
                raise
            log.warning("the old index can't be read, its pages are unknown: %s", error)
            return cls({}, rebuilds=True, live=None)

    async def page(self, url: str) -> Page | None:
        """The page with its Markdown as the live generation has it; None where that can't be read, or lacks it."""
        try:
            return await self.live.page(url) if self.live else None
        except StoreUnavailable:
            raise
        except StoreError as error:
            if not self.rebuilds:
                raise
            log.warning("a page of the old index can't be read url=%s error=%s", url, error)
            return None

    def reader(  # the parts of a run
        self,
        fetcher: Fetcher,
        workers: Workers,
        embedding: Embedding,
        entries: Sequence[Entry],
        settings: Settings,
        *,
        dry: bool,
    ) -> Reader:
        """A reader that compares with it; `dry` for one that asks no language model."""
        listed = frozenset(own_address(entry) for entry in entries)
        return Reader(fetcher, workers, settings, embedding, self.states, listed, fresh=self.rebuilds, dry=dry)

    async def carry_over(self, writer: Writer, report: Report, reader: Reader) -> None:
        """Put the pages that this run didn't read, from the Markdown that the live generation has."""
        if self.live is None or not self.rebuilds:
            return
        done = {p.url for p in report.pages if p.outcome == "removed" or p.read}
        for url in self.states.keys() - done:
            page = await self.page(url)
            if page is None:
                report.pages.append(PageReport(url, "removed", "its text can't be read from the damaged index"))
            else:
                put = Prepared(page) if page.same_as else await reader.finished(Prepared(page))
                await writer.write(Change(None, put=put))
        await writer.flush()
