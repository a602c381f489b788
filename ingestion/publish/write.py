"""Changes -> the draft: embeds only texts that it lacks, in full batches, and writes page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.core.types import Chunk, Page
from app.index.protocols import Draft
from ingestion.convert.prepare import Prepared
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
    _texts: dict[str, str] = field(default_factory=dict)

    async def write(self, change: PageChange) -> None:
        """Write one change. Changes without new texts may be written earlier than others before them."""
        if change.put is None:
            await self._record(change)
            return
        missing = await self.draft.missing(change.put.chunks)
        self._waiting.append(change)
        self._texts |= texts_of(change.put, missing)
        if len(self._texts) >= self.embedder.batch * self.embedder.parallel:
            await self.flush()

    async def flush(self) -> None:
        """Embed and write all that waits."""
        waiting, texts = self._waiting, self._texts
        self._waiting, self._texts = [], {}
        vectors = await self.embedder.embed(texts)
        for change in waiting:
            if change.put is not None:
                own = {id_: vectors[id_] for id_ in texts_of(change.put, change.put.chunks) if id_ in vectors}
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


def texts_of(put: Prepared, missing: Sequence[Chunk]) -> dict[str, str]:
    """What `Draft.put` needs vectors of, by their keys: missing chunks, questions of all chunks, and the page's summary."""
    texts = {chunk.id: chunk.embedded_text for chunk in missing}
    texts |= {chunk.questions_id: chunk.questions_text for chunk in put.chunks if chunk.questions}
    return texts | ({put.page.url: put.page.summary_text} if put.page.summary_text else {})
