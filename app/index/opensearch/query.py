"""Converts a `Query` to one `_msearch` with both legs, and the response to candidates with raw scores."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from app.core.types import Candidate, Filters, LexicalText, Query
from app.index.opensearch.catalog import Published
from app.index.opensearch.connection import ALL_SHARDS, to_lines
from app.index.opensearch.rows import alive
from app.index.ranking.legs import PAGES
from app.index.vocabulary import tokens_of_question

FACTS = ("url", "language", "dated", "versions", "collection")
SHOWN = ("chunk", *(f"metadata.{name}" for name in FACTS))
ANSWER = "responses.hits.hits._score,responses.hits.hits.fields,responses.error,responses.status"
"""The parts of the response that are read; the server leaves out the rest."""

RESERVED, ESCAPED = re.compile(r'[.?+*|{}\[\]()"\\#@&<>~^$-]'), r"\\\g<0>"
"""Special characters of Lucene's regular expressions; opensearch-py has no function to escape them."""

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
    header = {"index": published.chunks, **ALL_SHARDS}
    searches: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    if should := lexical_clauses(query.texts):
        words = {"bool": {"filter": restrict, "should": should, "minimum_should_match": 1}}
        searches["lexical"] = header | WORDS_OF_ALL, _body(words, query.depth)
    if query.vector is not None and any(query.vector):  # one of zeros only has no cosine
        searches["vector"] = header, _body(_vector(query, restrict, ef_search=ef_search), query.depth)
        if recipe.questions:
            near = _vector(query, restrict, "questions_embedding", ef_search=ef_search)
            searches["questions"] = header, _body(near, query.depth)
        if recipe.summaries:
            near = _vector(replace(query, depth=PAGES), restrict, "summary_embedding")
            body = _body(near, PAGES) | {"docvalue_fields": ["metadata.url"]}
            searches["summaries"] = header | {"index": published.pages}, body
    return list(searches), to_lines(*(line for search in searches.values() for line in search))


def summary_hits(answer: Mapping[str, Any]) -> dict[str, float]:
    """The cosines of the pages in the response to the search of summaries, best first."""
    hits = answer.get("hits", {}).get("hits", ())
    return {hit["fields"]["metadata.url"][0]: hit["_score"] * 2.0 - 1.0 for hit in hits}


def best_of_pages(urls: Sequence[str], query: Query, generation: int) -> dict[str, Any]:
    """A search for the chunk of each of these pages that is nearest to the vector of the query."""
    within = [*alive(generation), *restrictions(query.filters), {"terms": {"metadata.url": urls}}]
    search = _vector(replace(query, exact=True), within)
    return _body(search, len(urls)) | {"collapse": {"field": "metadata.url"}}


_candidate: Callable[[tuple[Any, ...]], Candidate] = partial(tuple.__new__, Candidate)


def candidates(leg: str, answer: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """The candidates in the response to one search; lexical scores are BM25, vector scores are cosines."""
    # Lucene's score is (1 + cosine) / 2
    slope, offset = (1.0, 0.0) if leg == "lexical" else (2.0, -1.0)
    # a list, and tuples without a call of Python: this is done for hundreds of candidates per question
    return tuple(
        [
            _candidate(
                (
                    fields["chunk"][0],
                    fields["metadata.url"][0],
                    fields["metadata.language"][0],
                    hit["_score"] * slope + offset,
                    fields["metadata.dated"][0] if "metadata.dated" in fields else "",
                    tuple(fields["metadata.versions"]) if "metadata.versions" in fields else (),
                    fields["metadata.collection"][0],
                )
            )
            for hit in answer.get("hits", {}).get("hits", ())
            for fields in (hit["fields"],)
        ]
    )


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
