"""How an index is laid out: the strict mapping of chunks, and that of page records."""

from __future__ import annotations

from typing import Any

OPEN = 2**31 - 1
"""`gen_to` of a row that no generation has ended."""

VERSION = 3
"""Raised with every change below that old indexes can't follow: the next run then rebuilds."""

KEYWORDS = (
    "url",
    "title",
    "language",
    "collection",
    "heading_path",
    "anchor",
    "link",
    "file",
    "published",
    "modified",
    "dated",
    "translated_from",
    "versions",
)


FOLDED = {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "asciifolding"]}
"""How other readers of the index search the text; we search `tokens`."""


def chunk_index(dimension: int) -> dict[str, Any]:
    """Settings and mapping of an index of chunks; readable by LlamaIndex's OpensearchVectorStore as it comes."""
    return {
        "settings": {"index": {"knn": True, **_size()}, "analysis": {"analyzer": {"folded": FOLDED}}},
        "mappings": {
            "dynamic": "strict",
            "properties": {
                "chunk": {"type": "keyword"},
                "content": {"type": "text", "analyzer": "folded"},
                # our own analysis, the same as in every store: only the spaces between its tokens mean something
                "tokens": {"type": "text", "analyzer": "whitespace", "index_options": "freqs"},
                "embedding": _vector(dimension),
                "sections": {"type": "object", "enabled": False},
                # shown only; as text without an index they have no limit
                "before": {"type": "text", "index": False},
                "after": {"type": "text", "index": False},
                "metadata": {
                    "dynamic": "strict",
                    "properties": {
                        **{name: _keyword() for name in KEYWORDS},
                        "position": {"type": "integer"},
                        # here, so that other readers can filter by them too
                        "gen_from": {"type": "integer"},
                        "gen_to": {"type": "integer"},
                    },
                },
            },
        },
    }


def page_index(dimension: int = 0) -> dict[str, Any]:
    """Settings and mapping of an index of page records; with a dimension, their summaries can be searched."""
    searched = {"summary_embedding": _vector(dimension)} if dimension else {}
    return {
        "settings": {"index": {**({"knn": True} if searched else {}), **_size()}},
        "mappings": {
            "dynamic": "strict",
            "properties": {
                **searched,
                "metadata": {
                    "dynamic": "strict",
                    "properties": {
                        "url": {"type": "keyword"},
                        "language": {"type": "keyword"},
                        **({name: {"type": "keyword"} for name in ("collection", "versions")} if searched else {}),
                        "gen_from": {"type": "integer"},
                        "gen_to": {"type": "integer"},
                    },
                },
                "chunk_ids": {"type": "keyword", "index": False, "doc_values": False},
                "markdown": {"type": "text", "index": False},
                "record": {"type": "object", "enabled": False},
            },
        },
    }


def meta_index() -> dict[str, Any]:
    """Settings and mapping of the index with the writer's lock and the list of generations; read by id only."""
    return {"settings": {"index": _size()}, "mappings": {"enabled": False}}


def _size() -> dict[str, Any]:
    # refreshed by the writer alone: readers filter by generation, so nothing is to be seen before it publishes
    return {"number_of_shards": 1, "auto_expand_replicas": "0-1", "refresh_interval": "-1"}


def _vector(dimension: int) -> dict[str, Any]:
    # faiss needs native libraries that not every server has, and kills those without
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    return {"type": "knn_vector", "dimension": dimension, "method": method}


def _keyword() -> dict[str, Any]:
    # LlamaIndex filters on .keyword; the limit keeps a monstrous heading from failing the row
    plain = {"type": "keyword", "ignore_above": 8000}
    return {**plain, "fields": {"keyword": plain}}
