"""Converts a `Query` to one `_msearch` with both legs, and the response to candidates with raw scores."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.core.types import Candidate, Filters, LexicalText, Query
from app.index.opensearch.catalog import Published
from app.index.opensearch.connection import ALL_SHARDS, to_lines
from app.index.opensearch.rows import alive
from app.index.ranking.legs import PAGES, SAMPLE, SummaryHit
from app.index.vocabulary import tokens_of_question

FACTS = ("url", "language", "dated", "versions", "collection")
SHOWN = ("chunk", *(f"metadata.{name}" for name in FACTS))
ANSWER = "responses.hits.hits._score,responses.hits.hits.fields,responses.error,responses.status"
"""The parts of the response that are read; the server leaves out the rest."""

RESERVED, ESCAPED = re.compile(r'[.?+*|{}\[\]()"\\#@&<>~^$-]'), r"\\\g<0>"
"""Special characters of Lucene's regular expressions; opensearch-py has no function to escape them."""

SET_FACTS = ("metadata.url", "metadata.language", "metadata.translation_set")
PAGES_AT_ONCE = 5000
TOKENS_AT_ONCE = 1000
MOST_READ = 10_000  # chunks that the words of an index are taken from
MOST_CHUNKS = 5000  # of the pages that are read for one question

WORDS_OF_ALL = {"search_type": "dfs_query_then_fetch"}
"""Parameter of searches by words: scores use the frequencies in all shards. The server ignores it for a single shard."""

MAX_TERMS = 900
"""Limit of tokens in one search; the server accepts fewer than 1,024 clauses."""


def legs(published: Published, query: Query, ef_search: int = 0) -> tuple[list[str], bytes]:
    """The names of the searches that the query needs, and the body of `_msearch` with one for each.

    If the index has questions or summaries, they are searched along with the vector leg.
    """
    recipe = published.info.recipe
    restrict = [*alive(published.info.id), *restrictions(query.filters)]
    searches: dict[str, dict[str, Any]] = {}
    should = lexical_clauses(query.texts)
    if should:
        searches["lexical"] = {"bool": {"filter": restrict, "should": should, "minimum_should_match": 1}}
    # a zero vector has no cosine
    if query.vector is not None and any(query.vector):
        searches["vector"] = _vector(query, restrict, ef_search=ef_search)
        if recipe.questions:
            searches["questions"] = _vector(query, restrict, "questions_embedding", ef_search=ef_search)
    header = {"index": published.chunks, **ALL_SHARDS}
    headers = {"lexical": header | WORDS_OF_ALL}
    lines = to_lines(
        *(line for name, search in searches.items() for line in (headers.get(name, header), _body(search, query.depth)))
    )
    names = list(searches)
    if recipe.summaries and "vector" in searches:
        near = nearest_summaries(query, published.info.id)
        lines += to_lines({**header, "index": published.pages}, near)
        names.append("summaries")
    return names, lines


def nearest_summaries(query: Query, generation: int) -> dict[str, Any]:
    """A search for the pages whose summaries are nearest to the vector of the query."""
    restrict = [*alive(generation), *restrictions(query.filters)]
    near = _vector(replace(query, depth=PAGES), restrict, "summary_embedding")
    return _body(near, PAGES) | {"docvalue_fields": ["metadata.url"]}


def summary_hits(answer: Mapping[str, Any]) -> tuple[SummaryHit, ...]:
    """The pages in the response to the search of summaries, best first, with cosines."""
    hits = answer.get("hits", {}).get("hits", ())
    return tuple(SummaryHit(hit["fields"]["metadata.url"][0], hit["_score"] * 2.0 - 1.0) for hit in hits)


def best_of_pages(urls: Sequence[str], query: Query, generation: int) -> dict[str, Any]:
    """A search for the chunk of each of these pages that is nearest to the vector of the query."""
    within = [*alive(generation), *restrictions(query.filters), {"terms": {"metadata.url": urls}}]
    search = _vector(replace(query, exact=True), within)
    return _body(search, len(urls)) | {"collapse": {"field": "metadata.url"}}


def candidates(leg: str, answer: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """The candidates in the response to one search; lexical scores are BM25, vector scores are cosines."""
    # Lucene's score is (1 + cosine) / 2
    slope, offset = (1.0, 0.0) if leg == "lexical" else (2.0, -1.0)
    return tuple(
        Candidate(
            id=fields["chunk"][0],
            url=fields["metadata.url"][0],
            language=fields["metadata.language"][0],
            score=hit["_score"] * slope + offset,
            dated=fields.get("metadata.dated", ("",))[0],
            versions=tuple(fields.get("metadata.versions", ())),
            collection=fields["metadata.collection"][0],
        )
        for hit in answer.get("hits", {}).get("hits", ())
        for fields in (hit["fields"],)
    )


def translations(generation: int, after: Sequence[str]) -> dict[str, Any]:
    """A search for the pages in translation sets, by address, from `after` on."""
    body = {
        "size": PAGES_AT_ONCE,
        "query": {"bool": {"filter": [*alive(generation), {"exists": {"field": "metadata.translation_set"}}]}},
        "sort": [{"metadata.url": "asc"}],
        "track_total_hits": False,
        "stored_fields": "_none_",
        "docvalue_fields": SET_FACTS,
    }
    return body | ({"search_after": after} if after else {})


def tokens_of_chunks(generation: int, after: Sequence[str]) -> dict[str, Any]:
    """A search for the tokens of the chunks, by chunk, from `after` on."""
    body = {
        "size": TOKENS_AT_ONCE,
        "query": {"bool": {"filter": alive(generation)}},
        "sort": [{"chunk": "asc"}],
        "track_total_hits": False,
        "_source": ["tokens"],
    }
    return body | ({"search_after": after} if after else {})


def of_pages(chunks: str, pages: str, urls: Collection[str], generation: int) -> bytes:
    """The body of an `_msearch` for the chunks of these pages, and for the order of the chunks."""
    selected = {"bool": {"filter": [*alive(generation), {"terms": {"metadata.url": sorted(urls)}}]}}
    return to_lines(
        {"index": chunks, **ALL_SHARDS},
        {
            "size": MOST_CHUNKS,
            "query": selected,
            "_source": {"excludes": ["*embedding", "tokens"]},
            "track_total_hits": False,
        },
        {"index": pages, **ALL_SHARDS},
        {"size": len(urls), "query": selected, "_source": ["chunk_ids", "metadata.url"], "track_total_hits": False},
    )


def vectors_of_languages(chunks: str, languages: Sequence[str], generation: int) -> bytes:
    """The body of `_msearch` with a search for each language: the vectors of its chunks with the lowest ids."""
    lines: list[dict[str, Any]] = []
    for language in languages:
        wanted = [*alive(generation), {"term": {"metadata.language": language}}, {"exists": {"field": "embedding"}}]
        body = {
            "size": SAMPLE,
            "query": {"bool": {"filter": wanted}},
            "sort": [{"chunk": "asc"}],
            "_source": ["embedding"],
            "track_total_hits": False,
        }
        lines += ({"index": chunks, **ALL_SHARDS}, body)
    return to_lines(*lines)


def restrictions(filters: Filters) -> list[dict[str, Any]]:
    """The filters as clauses of a query."""
    clauses: list[dict[str, Any]] = []
    if filters.collections:
        clauses.append({"terms": {"metadata.collection": filters.collections}})
    if filters.languages:
        clauses.append({"terms": {"metadata.language": filters.languages}})
    if filters.url_prefixes:
        prefixes = [{"prefix": {"metadata.url": prefix}} for prefix in filters.url_prefixes]
        clauses.append({"bool": {"should": prefixes, "minimum_should_match": 1}})
    # the path begins after the host, whatever that is
    if filters.sections and all(section.strip("/") for section in filters.sections):
        clauses.append(_matches("", [section.strip("/") for section in filters.sections], "([/.?].*)?"))
    if filters.versions:
        in_path = _matches("(.*/)?v?", filters.versions, "(/.*)?")
        stated = {"terms": {"metadata.versions": filters.said_versions}}
        clauses.append({"bool": {"should": [in_path, stated], "minimum_should_match": 1}})
    return clauses


def _matches(before: str, values: Sequence[str], after: str) -> dict[str, Any]:
    expression = f"[^/]+//[^/]+/{before}({'|'.join(RESERVED.sub(ESCAPED, value) for value in values)}){after}"
    return {"regexp": {"metadata.url": {"value": expression}}}


def _body(search: dict[str, Any], depth: int) -> dict[str, Any]:
    return {
        "size": depth,
        "query": search,
        "track_total_hits": False,
        "stored_fields": "_none_",  # reading the stored text of a row costs more than finding the row
        "docvalue_fields": SHOWN,
    }


def lexical_clauses(texts: Sequence[LexicalText]) -> list[dict[str, Any]]:
    """A clause for the tokens of each text; the scores of a row are added up."""
    clauses: list[dict[str, Any]] = []
    remaining = MAX_TERMS
    for text in texts:
        tokens = tokens_of_question(text.text, text.language)[:remaining] if text.weight > 0 else []
        remaining -= len(tokens)
        if tokens:
            clauses.append({"match": {"tokens": {"query": " ".join(tokens), "boost": text.weight}}})
    return clauses


def _vector(
    query: Query, restrict: list[dict[str, Any]], field: str = "embedding", *, ef_search: int = 0
) -> dict[str, Any]:
    if not query.exact:
        near: dict[str, Any] = {"vector": query.vector, "k": query.depth, "filter": {"bool": {"filter": restrict}}}
        if ef_search:
            near["method_parameters"] = {"ef_search": ef_search}
        return {"knn": {field: near}}
    script = {
        "source": "knn_score",
        "lang": "knn",
        "params": {"field": field, "query_value": query.vector, "space_type": "cosinesimil"},
    }
    within = {"bool": {"filter": [*restrict, {"exists": {"field": field}}]}}
    return {"script_score": {"query": within, "script": script}}
