"""The pages of the live generation, from which a run starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.errors import NoIndex, StoreError, StoreUnavailable
from app.core.generation import SourceRecord
from app.core.log_message import LogMessage
from app.core.types import Page
from app.index.protocols import Draft, Generation, Store
from ingestion.convert.prepare import Prepared
from ingestion.recorded import recorded, recorded_of_damaged

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The pages that the index has before a run, by public address.

    `rebuilds` is True when the draft can't share the live generation, so that every page must be written again.
    `sources` are those of the live generation, also if its pages can't be read.
    """

    states: Mapping[str, Page]
    rebuilds: bool
    live: Generation | None
    sources: tuple[SourceRecord, ...] = ()

    @classmethod
    async def read(cls, draft: Draft, store: Store) -> Baseline:
        """The pages of the draft, or of the live generation where the draft starts empty."""
        try:
            live = await store.live()
            states = {page.url: page for page in await live.pages()} if draft.rebuilds else await draft.page_states()
            return cls(states, draft.rebuilds, live, recorded(live.info, states.values()))
        except NoIndex:
            return cls({}, rebuilds=True, live=None)
        except StoreUnavailable:
            raise
        except StoreError as error:
            if not draft.rebuilds:
                raise
            log.warning("the old index can't be read, its pages are unknown: %s", error)
            return cls({}, rebuilds=True, live=None, sources=await recorded_of_damaged(store))

    async def page(self, url: str) -> Page | None:
        """The page with its Markdown from the live generation; None when it is missing or can't be read."""
        try:
            return await self.live.page(url) if self.live else None
        except StoreError as error:
            self._unreadable(url, error)
            return None

    async def cut(self, page: Page) -> Prepared | None:
        """The page with its chunks and their places in the live generation; None when they are missing or can't be read."""
        try:
            chunks = (await self.live.chunks_of([page.url])).get(page.url) if self.live else None
            plain = (await self.live.plain_texts([page.url])).get(page.url) if self.live else None
        except StoreError as error:
            self._unreadable(page.url, error)
            return None
        return Prepared(replace(page, plain=plain or page.plain), chunks) if chunks else None

    def _unreadable(self, url: str, error: StoreError) -> None:
        """Raises the error unless it is a damage of the index that is built anew."""
        if isinstance(error, StoreUnavailable) or not self.rebuilds:
            raise error
        log.warning(LogMessage("a page of the old index can't be read", url=url, error=error))


async def live_pages(store: Store) -> Sequence[Page]:
    """The pages of the live index; none if there is none, or if it is damaged. Raises `StoreUnavailable`."""
    try:
        return await (await store.live()).pages()
    except StoreUnavailable:
        raise
    except StoreError:
        return ()
