"""The mappings of the indices of chunks and page records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.index.opensearch.address import Layout

PLAIN = Layout()

OPEN = 2**31 - 1
"""`gen_to` of a row that is still valid."""

VERSION = 4
"""Increase it with every incompatible change below; the next run then rebuilds the index."""

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
"""The analyzer for other clients of the index; this product searches `tokens`."""


TRANSLATION_SET = {"translation_set": {"type": "keyword"}}
"""A field of page records that indices of earlier releases lack until something is written to them."""


def chunk_index(dimension: int, layout: Layout = PLAIN, *, questions: bool = False) -> dict[str, Any]:
    """Settings and mapping of an index of chunks, compatible with LlamaIndex's OpensearchVectorStore.

    With `questions`, chunks can be searched by these too.
    """
    searched = {"questions_embedding": _vector(dimension, layout), "questions": {"type": "object", "enabled": False}}
    return {
        "settings": {"index": {"knn": True, **_size(layout)}, "analysis": {"analyzer": {"folded": FOLDED}}},
        "mappings": {
            "dynamic": "strict",
            "properties": {
                "chunk": {"type": "keyword"},
                "content": {"type": "text", "analyzer": "folded"},
                # already analysed as in every store; only spaces separate tokens
                "tokens": {"type": "text", "analyzer": "whitespace", "index_options": "freqs"},
                "embedding": _vector(dimension, layout),
                **(searched if questions else {}),
                "sections": {"type": "object", "enabled": False},
                "metadata": {
                    "dynamic": "strict",
                    "properties": {
                        **{name: _keyword() for name in KEYWORDS},
                        "position": {"type": "integer"},
                        # in metadata, so that other clients can filter by them too
                        "gen_from": {"type": "integer"},
                        "gen_to": {"type": "integer"},
                    },
                },
            },
        },
    }


def page_index(dimension: int = 0, layout: Layout = PLAIN) -> dict[str, Any]:
    """Settings and mapping of an index of page records. With a dimension, their summaries can be searched."""
    searched = {"summary_embedding": _vector(dimension, layout)} if dimension else {}
    return {
        "settings": {"index": {**({"knn": True} if searched else {}), **_size(layout)}},
        "mappings": {
            "dynamic": "strict",
            "properties": {
                **searched,
                "metadata": {
                    "dynamic": "strict",
                    "properties": {
                        "url": {"type": "keyword"},
                        "language": {"type": "keyword"},
                        **TRANSLATION_SET,
                        **({name: {"type": "keyword"} for name in ("collection", "versions")} if searched else {}),
                        "gen_from": {"type": "integer"},
                        "gen_to": {"type": "integer"},
                    },
                },
                "chunk_ids": {"type": "keyword", "index": False, "doc_values": False},
                # text without an index has no limit of its length
                "markdown": {"type": "text", "index": False},
                "plain": {"type": "object", "enabled": False},
                "record": {"type": "object", "enabled": False},
            },
        },
    }


def search_pipeline(vector_weight: float) -> dict[str, Any]:
    """A pipeline for hybrid queries: it scales the scores of words and vectors to 0..1 and adds them by weight."""
    weights = {"weights": [round(1 - vector_weight, 6), vector_weight]}
    merge = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": weights},
    }
    return {"phase_results_processors": [{"normalization-processor": merge}]}


def meta_index(layout: Layout = PLAIN) -> dict[str, Any]:
    """Settings and mapping of the index with the writer's lock and the list of generations, which are read by id."""
    return {"settings": {"index": _size(replace(layout, shards=1))}, "mappings": {"enabled": False}}


def _size(layout: Layout) -> dict[str, Any]:
    # only the writer refreshes: readers filter by generation, so they see nothing before the publish anyway
    return {"number_of_shards": layout.shards, **layout.copies, "refresh_interval": "-1"}


def _vector(dimension: int, layout: Layout) -> dict[str, Any]:
    # faiss needs native libraries; a server without them crashes
    method: dict[str, Any] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    if layout.graph:
        method["parameters"] = layout.graph
    return {"type": "knn_vector", "dimension": dimension, "method": method}


def _keyword() -> dict[str, Any]:
    # LlamaIndex filters on .keyword; the limit keeps a monstrous heading from failing the row
    plain = {"type": "keyword", "ignore_above": 8000}
    return {**plain, "fields": {"keyword": plain}}
