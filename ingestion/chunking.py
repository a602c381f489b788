"""A page -> its chunks, beside the event loop; embeds what the splitter wants to compare first."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from app.core.types import Chunk, Page
from ingestion.embed import Embedding
from ingestion.split import Splitter


@dataclass(frozen=True)
class Chunking:
    """Cuts pages in `thread`. What is embedded to find where to cut is counted by `embedding` too."""

    splitter: Splitter
    embedding: Embedding
    thread: ThreadPoolExecutor

    async def chunks(self, page: Page) -> tuple[Chunk, ...]:
        """The page's chunks in order. Raises `ModelError` when the embedder fails."""
        loop = asyncio.get_running_loop()
        windows = await loop.run_in_executor(self.thread, self.splitter.windows, page)
        vectors = await self.embedding.vectors(windows) if windows else ()
        return await loop.run_in_executor(self.thread, self.splitter.split, page, vectors)
