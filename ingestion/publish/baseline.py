"""The pages of the live generation, from which a run starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from app.core.errors import NoIndex, StoreError, StoreUnavailable
from app.core.types import Page
from app.index.protocols import Draft, Generation, Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The pages that the index has before a run, by public address.

    `rebuilds` is True when the draft can't share the live generation, so that every page must be written again.
    """

    states: Mapping[str, Page]
    rebuilds: bool
    live: Generation | None

    @classmethod
    async def read(cls, draft: Draft, store: Store) -> Baseline:
        """The pages of the draft, or of the live generation where the draft starts empty."""
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
        """The page with its Markdown from the live generation; None when it is missing or can't be read."""
        try:
            return await self.live.page(url) if self.live else None
        except StoreUnavailable:
            raise
        except StoreError as error:
            if not self.rebuilds:
                raise
            log.warning("a page of the old index can't be read url=%s error=%s", url, error)
            return None
