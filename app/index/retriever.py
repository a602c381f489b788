"""The search in a generation as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from app.core.types import Legs, LexicalText, Query
from app.index.protocols import Generation
from app.index.ranking.fuse import rank
from app.index.ranking.units import with_units
from app.models.nodes import node_of


@dataclass
class SearchBundle(QueryBundle):  # type: ignore[misc]  # LlamaIndex isn't typed
    """A question with the query that searches for it. `legs` are what an earlier search found for it; the retriever fills them."""

    query: Query = field(default_factory=lambda: Query(()))
    legs: Legs | None = None


class GenerationRetriever(BaseRetriever):  # type: ignore[misc]
    """Searches one generation by words and by meaning, and fuses both legs into the best chunks: `ChunkNode`s, best first.

    A `SearchBundle` says how; of another bundle, the words of `query_str` are searched in all languages of the index, and its
    `embedding`, if it has one.
    """

    def __init__(self, generation: Generation) -> None:
        super().__init__()
        self._generation = generation

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        bundle = query_bundle if isinstance(query_bundle, SearchBundle) else self._searched_everywhere(query_bundle)
        legs = bundle.legs or await self._generation.search(bundle.query)
        bundle.legs = await with_units(self._generation, legs, bundle.query)
        return [node_of(hit) for hit in await rank(self._generation, bundle.legs, bundle.query)]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return asyncio.run(self._aretrieve(query_bundle))

    def _searched_everywhere(self, bundle: QueryBundle) -> SearchBundle:
        languages = self._generation.info.languages
        texts = tuple(LexicalText(language, bundle.query_str) for language in languages)
        query = Query(texts, bundle.embedding, language=languages[0] if languages else "")
        return SearchBundle(bundle.query_str, query=query)
