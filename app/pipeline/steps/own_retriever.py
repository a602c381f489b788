"""Lets a LlamaIndex retriever choose the passages, in the place of `retrieve`."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from app.core.log_message import LogMessage
from app.core.types import Hit
from app.index.protocols import Generation
from app.index.retriever import SearchBundle
from app.models.threads import in_thread, inherits
from app.pipeline.steps.retrieve import Retrieve

log = logging.getLogger("app.pipeline")


@dataclass(frozen=True)
class OwnRetrieve(Retrieve):
    """Takes the chunks of the index that the retriever returns, in its order; those that the own search finds, too, have its scores,
    by which evidence is judged. If the retriever fails or takes longer than so many `seconds`, the own ranking stays.
    """

    retriever: BaseRetriever
    seconds: float

    async def _ranked(self, generation: Generation, bundle: SearchBundle) -> Sequence[Hit]:
        most = bundle.query.limit
        wide = replace(bundle.query, limit=max(most, self.settings.tuning.rerank_candidates))
        query, bundle.query = bundle.query, wide
        own = await super()._ranked(generation, bundle)
        try:
            async with asyncio.timeout(self.seconds):
                nodes = await self._retrieved(QueryBundle(bundle.query_str, embedding=list(query.vector or ()) or None))
        except Exception as error:  # noqa: BLE001  # anything can happen in a class from outside
            log.warning(LogMessage("retriever failed, the own ranking stays", it=self.name, error=error))
            return own[:most]
        known, scores = {hit.chunk.id: hit for hit in own}, {one.node.node_id: one.score or 0.0 for one in nodes}
        chunks = await generation.fetch(list(scores))
        admits = query.filters.admits
        found = [known.get(chunk.id) or Hit(chunk, fused=scores[chunk.id]) for chunk in chunks
                 if admits(chunk.url, chunk.collection, {chunk.language}, chunk.versions)]  # fmt: skip
        return found[:most]

    async def _retrieved(self, bundle: QueryBundle) -> list[NodeWithScore]:
        if inherits(self.retriever, BaseRetriever, "_aretrieve"):
            return await in_thread(lambda: self.retriever.retrieve(bundle))
        return list(await self.retriever.aretrieve(bundle))
