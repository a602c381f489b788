"""Found chunks as nodes of LlamaIndex."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import PrivateAttr

from app.core.types import Chunk, Hit


class ChunkNode(TextNode):  # type: ignore[misc]  # LlamaIndex isn't typed
    """A chunk with its id, text and facts. A copy by its JSON has no hit."""

    _hit: Hit | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, hit: Hit) -> ChunkNode:
        """The chunk of the hit."""
        chunk, facts = hit.chunk, _facts(hit.chunk)
        node = cls(id_=chunk.id, text=chunk.text, metadata={"context": chunk.context, **facts}, metadata_template="{value}",
                   excluded_embed_metadata_keys=list(facts), excluded_llm_metadata_keys=list(facts))  # fmt: skip
        node._hit = hit
        return node

    @property
    def hit(self) -> Hit | None:
        """What the index found."""
        return self._hit


def node_of(hit: Hit) -> NodeWithScore:
    """The chunk as a node, with the score that orders the hits."""
    return NodeWithScore(node=ChunkNode.of(hit), score=hit.score)


def hits_of(nodes: list[NodeWithScore]) -> list[Hit]:
    """The hits of nodes that `node_of` made, in their order."""
    return [one.node.hit for one in nodes if isinstance(one.node, ChunkNode) and one.node.hit]


def _facts(chunk: Chunk) -> dict[str, Any]:
    """The metadata that programs read; a model reads the `context` alone, as embedders do."""
    return {
        "title": chunk.title,
        "headings": " > ".join(chunk.heading_path),
        "url": chunk.link,
        "language": chunk.language,
        "collection": chunk.collection,
        "date": chunk.dated,
        "published": chunk.published,
        "modified": chunk.modified,
        "versions": list(chunk.versions),
    }
