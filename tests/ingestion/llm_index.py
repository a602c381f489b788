"""An index whose pages a language model works on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.core.settings import Settings
from app.index.embedded.store import EmbeddedStore
from ingestion.crawl.fetch import Fetcher
from ingestion.report import Report
from ingestion.run import ingest
from ingestion.sources import Source
from tests.fake_llm import FakeLLM
from tests.fakes import FakeEmbedder
from tests.ingestion.local_site import LocalSite


class ModelIndex:
    """A store, a site whose listed `paths` a test sets, and a scripted language model."""

    def __init__(self, site: LocalSite, llm: FakeLLM, directory: Path, **settings: Any) -> None:
        self.site, self.llm, self.directory = site, llm, directory
        self.store = EmbeddedStore(directory / "data")
        self.embedder = FakeEmbedder()
        self.paths: list[str] = []
        self.values: dict[str, Any] = {"llm_url": llm.url, "llm_model": "m", **settings}

    def settings(self, **more: Any) -> Settings:
        return Settings.load(None, **(self.values | more))

    async def run(self, *, at: str = "/sitemap.xml", **more: Any) -> Report:
        """Index the listed paths, by a sitemap at this path."""
        settings, source = self.settings(**more), Source(url=self.site.sitemap(*self.paths, at=at), anchors="none")
        async with Fetcher(settings, retry_wait=0.01) as fetcher:
            return await ingest([source], store=self.store, embedder=self.embedder, settings=settings, fetcher=fetcher)
