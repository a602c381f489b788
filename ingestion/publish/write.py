"""Changes -> the draft: embeds only texts that it lacks, in full batches, and writes page by page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from app.core.types import Chunk, Page
from app.index.protocols import Draft
from ingestion.embedding import BatchEmbedder
from ingestion.publish.change import PageChange
from ingestion.report import PageReport


@dataclass
class Writer:
    """Writes changes to a draft. Those with new texts wait until a full round of embedding calls is possible.

    `written` is called with the report of each address, `put` with each page and its Markdown.
    """

    draft: Draft
    embedder: BatchEmbedder
    written: Callable[[PageReport], None]
    put: Callable[[Page], None]
    _waiting: list[PageChange] = field(default_factory=list)
    _missing: list[Chunk] = field(default_factory=list)

    async def write(self, change: PageChange) -> None:
        """Write one change. Changes without new texts may be written earlier than others before them."""
        if change.put is None:
            await self._record(change)
            return
        missing = await self.draft.missing(change.put.chunks)
        self._waiting.append(change)
        self._missing += missing
        summaries = sum(1 for waiting in self._waiting if waiting.put and waiting.put.page.summary_text)
        if len(self._missing) + summaries >= self.embedder.batch * self.embedder.parallel:
            await self.flush()

    async def flush(self) -> None:
        """Embed and write all that waits."""
        waiting, missing = self._waiting, self._missing
        self._waiting, self._missing = [], []
        pages = [change.put.page for change in waiting if change.put is not None]
        vectors = await self.embedder.embed(list({chunk.id: chunk for chunk in missing}.values()), pages)
        for change in waiting:
            if change.put is not None:
                ids = {change.put.page.url, *(chunk.id for chunk in change.put.chunks)}
                own = {id_: vector for id_, vector in vectors.items() if id_ in ids}
                await self.draft.put(change.put.page, change.put.chunks, own)
                self.put(change.put.page)
            await self._record(change)

    async def _record(self, change: PageChange) -> None:
        if change.touch is not None:
            await self.draft.touch((change.touch,))
        if change.remove:
            await self.draft.remove(change.remove)
        if change.report is not None:
            self.written(change.report)
