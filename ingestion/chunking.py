"""A page -> its chunks, beside the event loop; embeds what the splitter wants to compare first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.types import Chunk, Page
from ingestion.embed import Embedding
from ingestion.split import Splitter
from ingestion.workers import Workers


@dataclass(frozen=True)
class Chunking:
    """Cuts pages beside the event loop. What is embedded to find where to cut is counted by `embedding` too."""

    splitter: Splitter
    embedding: Embedding
    workers: Workers

    async def chunks(self, page: Page) -> tuple[Chunk, ...]:
        """The page's chunks in order. Raises `ModelError` when the embedder fails."""
        windows, chunks = await self.workers.run(_by_text, self.splitter, page)
        if not windows:
            return chunks
        return await self.workers.run(self.splitter.split, page, await self.embedding.vectors(windows))


def _by_text(splitter: Splitter, page: Page) -> tuple[Sequence[str], tuple[Chunk, ...]]:
    """(what to embed first, nothing), or (nothing, the chunks)."""
    windows = splitter.windows(page)
    return windows, () if windows else splitter.split(page)
