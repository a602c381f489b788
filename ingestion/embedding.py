"""Texts -> vectors, in batches and several calls at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.core import spans
from app.core.errors import ModelError
from app.core.types import Vector
from app.models.protocols import Embedder


@dataclass
class BatchEmbedder:
    """Embeds texts in batches, several calls at once, and counts calls and texts."""

    embedder: Embedder
    batch: int
    parallel: int
    calls: int = 0
    texts: int = 0
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.parallel)

    async def embed(self, texts: Mapping[str, str]) -> Mapping[str, Vector]:
        """A vector for each text, by its key. The first failing call cancels the others and raises its `ModelError`."""
        return dict(zip(texts, await self.vectors(list(texts.values())), strict=True))

    async def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, in their order. The first failing call cancels the others and raises its `ModelError`."""
        batches = [texts[at : at + self.batch] for at in range(0, len(texts), self.batch)]
        try:
            async with asyncio.TaskGroup() as group:
                calls = [group.create_task(self._call(batch)) for batch in batches]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return [vector for call in calls for vector in call.result()]

    async def _call(self, texts: Sequence[str]) -> list[Vector]:
        facts = {
            "gen_ai.provider.name": getattr(self.embedder, "provider", "local"),
            "docs_assistant.texts": len(texts),
        }
        async with self._slots:
            with spans.call("embedder", self.embedder.name, "embed_passages", facts):
                vectors = await self.embedder.embed_passages(list(texts))
        if len(vectors) != len(texts):
            raise ModelError(
                f"The embedder {self.embedder.name} gave {len(vectors)} vectors for {len(texts)} texts. Check its server."
            )
        self.calls += 1
        self.texts += len(texts)
        return vectors


@dataclass
class CountingEmbedder(BatchEmbedder):
    """Counts the texts that would be embedded. Texts that decide where to cut are embedded all the same."""

    async def embed(self, texts: Mapping[str, str]) -> Mapping[str, Vector]:
        """No vectors."""
        self.texts += len(texts)
        self.calls += -(-len(texts) // self.batch)
        return {}
