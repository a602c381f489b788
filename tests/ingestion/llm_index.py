"""An index whose pages a language model works on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.report import Report
from ingestion.sources import Source
from tests.fake_llm import FakeLLM, fake_llm
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite


class ModelIndex(Index):
    """With a site whose listed `paths` a test sets, and a scripted language model."""

    def __init__(self, site: LocalSite, llm: FakeLLM, directory: Path, **settings: Any) -> None:
        super().__init__(directory / "data", site, llm_url=llm.url, llm_model="m", llm_timeout=60, **settings)
        self.llm, self.directory, self.paths = llm, directory, list[str]()

    async def run(self, *, at: str = "/sitemap.xml", **more: Any) -> Report:  # type: ignore[override]
        """Index the listed paths, by a sitemap at this path."""
        return await super().run(Source(url=self.site.sitemap(*self.paths, at=at), anchors="none"), **more)


def empty(kind: type[Any]) -> Any:
    """A fixture: an empty index of this kind."""

    @pytest.fixture
    async def index(site: LocalSite, tmp_path: Path) -> AsyncIterator[ModelIndex]:
        async with fake_llm() as llm, kind(site, llm, tmp_path) as made:
            yield made

    return index
