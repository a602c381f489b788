"""Converts chunks and page records to rows and back, and makes their mappings. A row is part of the generations `gen_from` <= g < `gen_to`."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from app.core.types import Chunk, Page, Vector, sections_of
from app.index.opensearch.connection import Layout
from app.index.ranking.units import packed
from app.index.vocabulary import tokens_of

PLAIN = Layout()

OPEN = 2**31 - 1
"""`gen_to` of a row that is still valid."""

VERSION = 5
"""Increase it with every incompatible change below; the next run then rebuilds the index."""

TEXTS = ("url", "title", "language", "collection", "file", "published", "modified", "translated_from")
KEYWORDS = (*TEXTS, "heading_path", "anchor", "link", "dated", "versions")
SAME = (*TEXTS, "position")
"""Fields of a chunk that its row has in `metadata` under their names."""

GENERATIONS = {name: {"type": "integer"} for name in ("gen_from", "gen_to")}
"""In `metadata`, so that other clients can filter by them too."""

FOLDED = {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "asciifolding"]}
"""The analyzer for other clients of the index; this product searches `tokens`."""


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
                # read beside the row, which is long
                "units": {"type": "binary", "doc_values": True},
                **(searched if questions else {}),
                "sections": {"type": "object", "enabled": False},
                "metadata": {
                    "dynamic": "strict",
                    "properties": {
                        **{name: _keyword() for name in KEYWORDS},
                        "position": {"type": "integer"},
                        **GENERATIONS,
                    },
                },
            },
        },
    }


def page_index(dimension: int = 0, layout: Layout = PLAIN) -> dict[str, Any]:
    """Settings and mapping of an index of page records. With a dimension, their summaries can be searched."""
    searched = {"summary_embedding": _vector(dimension, layout)} if dimension else {}
    keywords = ("url", "language", "translation_set", *(("collection", "versions") if dimension else ()))
    return {
        "settings": {"index": {**({"knn": True} if dimension else {}), **_size(layout)}},
        "mappings": {
            "dynamic": "strict",
            "properties": {
                **searched,
                "metadata": {
                    "dynamic": "strict",
                    "properties": {name: {"type": "keyword"} for name in keywords} | GENERATIONS,
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


_APART = frozenset({"url", "markdown", "chunk_ids"})
"""Facts of a page that are elsewhere in its row, and that `touch` keeps."""


def alive(generation: int) -> list[dict[str, Any]]:
    """Filters that select the rows of this generation."""
    return [{"range": {"metadata.gen_from": {"lte": generation}}}, {"range": {"metadata.gen_to": {"gt": generation}}}]


def chunk_row_id(chunk_id: str, generation: int) -> str:
    """The id of the row that this generation wrote for a chunk."""
    return f"{chunk_id}-{generation}"


def page_row_id(url: str, generation: int) -> str:
    """The id of the row that this generation wrote for a page; its length is fixed."""
    return f"{blake2b(url.encode('utf-8', 'replace'), digest_size=16).hexdigest()}-{generation}"


def searched(chunk: Chunk, vectors: Mapping[str, Vector]) -> dict[str, Any]:
    """The part of a new chunk's row that it keeps when other fields change: the vector of its text and its units."""
    return {**_found_by("embedding", vectors[chunk.id]), "units": b64encode(packed(chunk, vectors)).decode()}


def _found_by(field: str, vector: Vector | None) -> dict[str, Any]:
    import numpy as np  # where it is used: a run without changes doesn't need it

    # a zero vector has no cosine: such a chunk is found only by its words; longer numbers would be text that the index rounds
    return {field: np.asarray(vector, np.float32)} if vector is not None and any(vector) else {}


def chunk_row(chunk: Chunk, found_by: Mapping[str, Any], questions: Vector | None, generation: int) -> dict[str, Any]:
    """The row of a chunk, valid from this generation; `found_by` as `searched` makes it, `questions` is the vector of those."""
    row: dict[str, Any] = {
        "chunk": chunk.id,
        "content": chunk.text,
        "tokens": " ".join(tokens_of(chunk)),
        "sections": chunk.sections,
        "metadata": {
            **{name: getattr(chunk, name) for name in SAME},
            "heading_path": " > ".join(chunk.heading_path),
            "anchor": chunk.sections[0].anchor if chunk.sections else "",
            "link": chunk.link,
            # searches return it for each candidate, so leave out an empty one
            **({"dated": chunk.dated} if chunk.dated else {}),
            "versions": chunk.versions,
            "gen_from": generation,
            "gen_to": OPEN,
        },
        **found_by,
        **_found_by("questions_embedding", questions),
    }
    return row | ({"questions": dict(chunk.questions)} if chunk.questions else {})


def to_chunk(source: Mapping[str, Any]) -> Chunk:
    """The chunk in a row."""
    known = source["metadata"]
    return Chunk(
        id=source["chunk"],
        text=source["content"],
        sections=sections_of(source.get("sections", ())),
        **{name: known[name] for name in SAME},
        versions=tuple(known["versions"]),
        questions=tuple(source.get("questions", {}).items()),
    )


def page_row(page: Page, chunk_ids: tuple[str, ...], summary: Vector | None, generation: int) -> dict[str, Any]:
    """The row of a page, valid from this generation; `summary` is the vector of its summary."""
    row: dict[str, Any] = {
        "metadata": {
            "url": page.url,
            "language": page.language,
            "translation_set": set_of(page),
            "gen_from": generation,
            "gen_to": OPEN,
        },
        "chunk_ids": chunk_ids,
        "markdown": page.markdown,
        "plain": page.derived.plain,
        "record": page_record(page),
    }
    if found_by := _found_by("summary_embedding", summary):
        row |= found_by
        row["metadata"] |= {"collection": page.collection, "versions": page.versions}
    return row


def set_of(page: Page) -> str | None:
    """The translation set of a page that is searched; None without one, so that a search for those that have one passes over it."""
    return page.shared_set or None


def page_record(page: Page) -> dict[str, Any]:
    """The part of a page's row that `touch` replaces."""
    facts = {name: value for name, value in page.facts.items() if name not in _APART}
    # a list of pairs: a partial update would merge objects and keep removed languages
    return facts | {"alternates": list(page.alternates.items())}


def to_page(source: Mapping[str, Any]) -> Page:
    """The page in a row; without Markdown if the row was read without it."""
    facts = {**source["record"], "alternates": dict(source["record"]["alternates"])}
    own = {"markdown": source.get("markdown", ""), "chunk_ids": source.get("chunk_ids", ())}
    return Page.of_facts(facts | own | {"url": source["metadata"]["url"]})
