"""An index that tests run into."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from app.core.settings import Settings
from app.core.types import Page
from app.index.embedded.store import EmbeddedStore
from app.index.protocols import Store
from app.index.ranking.units import texts_to_embed
from ingestion.crawl.fetch import Fetcher
from ingestion.options import RunOptions
from ingestion.report import Report
from ingestion.run import ingest
from ingestion.sources import Source
from tests.fakes import FakeEmbedder
from tests.ingestion.local_site import LocalSite

LONG = " ".join(f"Sentence number {n} of this paragraph says something about storage." for n in range(12))
OPTIONS = {one.name for one in fields(RunOptions)}
"""All else that a run is given are settings."""


class Index:
    """A store with what a run into it needs: an embedder, `values` of settings, and the site of runs that name none."""

    def __init__(self, store: Path | Store, site: LocalSite | None = None, **values: Any) -> None:
        self.store: Store = EmbeddedStore(store) if isinstance(store, Path) else store
        self.embedder = FakeEmbedder()
        self.site = site or LocalSite()
        self.values: dict[str, Any] = {"crawl_timeout": 60, **values}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()

    def settings(self, **more: Any) -> Settings:
        return Settings.load(None, **self.values | more)

    async def run(self, *sites: str | Source, **more: Any) -> Report:
        """Run over these sites, else over the sitemap of the site."""
        options = RunOptions(**{name: more.pop(name) for name in OPTIONS & more.keys()})
        progress = more.pop("progress", None)
        settings = self.settings(**more)
        async with Fetcher(settings, retry_wait=0.001) as fetcher:
            given = {
                "store": self.store,
                "embedder": self.embedder,
                "settings": settings,
                "fetcher": fetcher,
                "progress": progress,
            }
            return await ingest(sites or (f"{self.site.url}/sitemap.xml",), **given, options=options)

    async def pages(self) -> dict[str, Page]:
        """What is listed of each page, by its path on a local site, else by its address."""
        return {path_of(page): page for page in await (await self.store.live()).pages()}

    async def page(self, url: str) -> Page:
        """A page with its text."""
        page = await (await self.store.live()).page(url)
        assert page is not None, url
        return page

    async def texts(self) -> dict[str, str]:
        """The Markdown of each page."""
        return {path: (await self.page(page.url)).markdown for path, page in (await self.pages()).items()}

    async def searched(self, known: Collection[str] = ()) -> list[str]:
        """The texts of all chunks but the known ones, as they are embedded."""
        live = await self.store.live()
        ids = [id_ for page in await live.pages() for id_ in page.derived.chunk_ids if id_ not in known]
        chunks = await live.fetch(ids)
        return sorted(text for chunk in chunks for text in texts_to_embed(chunk).values())

    async def text(self, url: str) -> str:
        """The chunks of a page."""
        live = await self.store.live()
        page = await live.page(url)
        return "\n".join(chunk.text for chunk in await live.fetch(page.derived.chunk_ids)) if page else ""


def path_of(page: Any) -> str:
    return re.sub(r"^http://[^/]+", "", page.url)


def outcomes(report: Report) -> dict[str, str]:
    return {path_of(page): page.outcome for page in report.pages}


def reasons(report: Report) -> dict[str, str]:
    return {path_of(page): page.reason for page in report.pages if page.reason}
