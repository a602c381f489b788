"""Texts -> vectors, in batches and several calls at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from app.core import spans
from app.core.errors import ModelError, StoreError
from app.core.types import Vector
from app.index.vector_cache import VectorCache
from app.models.guarded import Embedder
from ingestion.report import Report

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

log = logging.getLogger("ingestion")


@dataclass
class BatchEmbedder:
    """Embeds texts in batches, several calls at once, and counts calls and texts: the `texts` of the `asked` ones have vectors."""

    embedder: Embedder
    batch: int
    parallel: int
    calls: int = 0
    texts: int = 0
    asked: int = 0
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.parallel)

    async def embed(self, texts: Mapping[str, str]) -> Mapping[str, Vector]:
        """A vector for each text, by its key. Raises as `vectors`."""
        return dict(zip(texts, await self.vectors(list(texts.values())), strict=True))

    async def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, in their order. Raises the `ModelError` of the first failing call.

        After it, no other call begins, but those under way end: their vectors can be kept.
        """
        self.asked += len(texts)
        failures: list[Exception] = []
        batches = [texts[at : at + self.batch] for at in range(0, len(texts), self.batch)]
        found = await asyncio.gather(*(self._unless(failures, batch) for batch in batches))
        if failures:
            raise self._told(failures[0])
        return [vector for vectors in found for vector in vectors]

    async def _unless(self, failures: list[Exception], texts: Sequence[str]) -> list[Vector]:
        """The vectors; none if there are failures, to which that of this call is added."""
        async with self._slots:
            try:
                return [] if failures else await self._call(texts)
            except Exception as error:  # noqa: BLE001  # whoever waits for all calls raises it
                failures.append(error)
                return []

    async def _call(self, texts: Sequence[str]) -> list[Vector]:
        facts = {
            "gen_ai.provider.name": getattr(self.embedder, "provider", "local"),
            "docs_assistant.texts": len(texts),
        }
        with spans.call("embedder", self.embedder.name, "embed_passages", facts):
            vectors = await self.embedder.embed_passages(list(texts))
        if len(vectors) != len(texts):
            raise ModelError(
                f"The embedder {self.embedder.name} gave {len(vectors)} vectors for {len(texts)} texts. Check its server."
            )
        self.calls += 1
        self.texts += len(texts)
        return vectors

    def _told(self, error: Exception) -> Exception:
        """The error of a run that ends here, with what of its work is kept."""
        kept = getattr(self.embedder, "kept", 0)
        if not (kept and isinstance(error, ModelError)):
            return error
        told = f"{error} Of the {self.asked} texts so far, {kept} have vectors, which are kept: the next run goes on from there."
        return type(error)(told, status=error.status, body=error.body, retry_after=error.retry_after)

    @cached_property
    def embedding(self) -> BaseEmbedding:
        """The same as a class of LlamaIndex, for splitters that embed sentences."""
        from ingestion.split.parsers import CountedEmbedding

        return CountedEmbedding(self.vectors)


@dataclass
class CountingEmbedder(BatchEmbedder):
    """Counts the texts that would be embedded. Texts that decide where to cut are embedded all the same."""

    async def embed(self, texts: Mapping[str, str]) -> Mapping[str, Vector]:
        """No vectors."""
        self.texts += len(texts)
        self.calls += -(-len(texts) // self.batch)
        return {}


class ResumingEmbedder(Embedder):
    """The embedder with a cache of passages: what a run computed before it failed or was killed isn't computed again.

    `resumed` is the number of texts that an earlier run left, and `kept` that of all texts whose vectors are there for the next one.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        super().__init__(embedder.embedding, embedder.timeout)
        self.resumed = self.kept = 0
        self._cache = cache
        self._keeps = True

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        vectors = await self._found(texts)
        if new := [text for text in dict.fromkeys(texts) if text not in vectors]:
            try:
                computed = await super().embed_passages(new)
            except ModelError as error:
                await self._keep(dict(zip(new, error.rows, strict=False)))
                raise
            await self._keep(found := dict(zip(new, computed, strict=True)))
            vectors |= found
        return [vectors[text] for text in texts]

    async def _found(self, texts: Sequence[str]) -> dict[str, Vector]:
        try:
            vectors = await asyncio.to_thread(self._cache.find, texts)
        except StoreError as error:
            log.warning("vectors of an unfinished run can't be read, they are computed again: %s", error)
            await asyncio.to_thread(self._cache.clear)
            return {}
        self.resumed += len(vectors)
        self.kept += len(vectors)
        return vectors

    async def _keep(self, vectors: Mapping[str, Vector]) -> None:
        try:
            if self._keeps and vectors:
                await asyncio.to_thread(self._cache.add, vectors)
                self.kept += len(vectors)
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
