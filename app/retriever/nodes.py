"""Passages and sources as LlamaIndex nodes."""

from __future__ import annotations

from typing import Any
from urllib.parse import urldefrag

from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from app.api.answer_models import Passage
from app.core.turn import Source

SHOWN = ("title", "heading_path", "link")
"""The metadata that a language model reads with the text."""


def passage_node(passage: Passage) -> NodeWithScore:
    """The passage with the id of its chunk, its score, and where it comes from."""
    facts = ("section", "language", "translated_from", "collection", "published", "modified")
    metadata: dict[str, Any] = {
        "title": passage["title"],
        "heading_path": " > ".join(passage["headings"]),
        **_address(passage["url"]),
        **{name: passage[name] for name in facts},  # type: ignore[literal-required]
    }
    return _node(passage["id"], passage["text"], metadata, passage["score"])


def source_node(source: Source) -> NodeWithScore:
    """The section of a source, with the beginning of its text."""
    metadata = {
        "title": source.title,
        "heading_path": " > ".join(part for part in (source.title, source.section) if part),
        **_address(source.url),
        **{name: getattr(source, name) for name in ("section", "language", "translated_from")},
    }
    return _node(source.url, source.snippet, metadata, source.score)


def _address(link: str) -> dict[str, str]:
    url, anchor = urldefrag(link)
    return {"url": url, "link": link, "anchor": anchor}


def _node(id_: str, text: str, metadata: dict[str, Any], score: float) -> NodeWithScore:
    hidden = [name for name in metadata if name not in SHOWN]
    node = TextNode(
        id_=id_,
        text=text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=metadata["url"])},
    )
    return NodeWithScore(node=node, score=score)
