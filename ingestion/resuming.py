"""An embedder that keeps the vectors of a run until it is published."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from app.core.errors import StoreError
from app.core.types import Vector
from app.index.vector_cache import VectorCache
from app.models.protocols import Embedder
from ingestion.keeping_embedder import KeepingEmbedder
from ingestion.report import Report

log = logging.getLogger("ingestion")


class ResumingEmbedder(KeepingEmbedder):
    """The embedder with a cache of passages: what a run computed before it was killed isn't computed again.

    `resumed` is the number of texts that an earlier run left.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        super().__init__(embedder)
        self.resumed = 0
        self._cache = cache
        self._keeps = True

    async def _found(self, texts: Sequence[str]) -> dict[str, Vector]:
        try:
            found = await asyncio.to_thread(self._cache.find, texts)
        except StoreError as error:
            log.warning("vectors of an unfinished run can't be read, they are computed again: %s", error)
            await asyncio.to_thread(self._cache.clear)
            return {}
        self.resumed += len(found)
        return found

    async def _keep(self, vectors: Mapping[str, Vector]) -> None:
        try:
            if self._keeps:
                await asyncio.to_thread(self._cache.add, vectors)
        except StoreError as error:
            self._keeps = False  # one warning is enough
            log.warning("vectors can't be kept for the case that this run is interrupted: %s", error)

    def finish(self, report: Report) -> None:
        """Delete the cache if its vectors were published: unchanged texts have them in the index now."""
        if self.resumed:
            report.warnings.append(f"an unfinished run had left {self.resumed} vectors, which were used")
        published = report.published and report.published.recipe.embedder == self.name
        if published and not report.dry_run:
            self._cache.clear()
