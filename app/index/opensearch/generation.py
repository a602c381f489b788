"""One published state of an index on an OpenSearch server, for reading: a search is one `_msearch` with a search for each leg."""

import asyncio
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from app.core.errors import IndexMismatch
from app.core.gate import Shared
from app.core.generation import GenerationInfo
from app.core.types import Candidate, Chunk, Derived, Filters, Indirect, Legs, Page, PlainText, Query, Vector
from app.index.opensearch.catalog import Published
from app.index.opensearch.connection import ALL_SHARDS, Connection, to_lines
from app.index.opensearch.rows import alive, to_chunk, to_page
from app.index.opensearch.writing import Rows
from app.index.protocols import Counterparts, Pair, TranslationSets
from app.index.ranking.counterparts import counterparts_of
from app.index.ranking.legs import PAGES, SAMPLE, centres, of_summaries, pages_without_chunks
from app.index.vocabulary import Vocabulary, chunks_with, searched_terms

FACTS = ("url", "language", "dated", "versions", "collection")
SHOWN = ("chunk", *(f"metadata.{name}" for name in FACTS))
ANSWER = "responses.hits.hits._score,responses.hits.hits.fields,responses.error,responses.status"
"""The parts of the response that are read; the server leaves out the rest."""

RESERVED, ESCAPED = re.compile(r'[.?+*|{}\[\]()"\\#@&<>~^$-]'), r"\\\g<0>"
"""Special characters of Lucene's regular expressions; opensearch-py has no function to escape them."""

WORDS_OF_ALL = {"search_type": "dfs_query_then_fetch"}
"""Parameter of searches by words: scores use the frequencies in all shards. The server ignores it for a single shard."""

SET_FACTS = ("metadata.url", "metadata.language", "metadata.translation_set")
PAGES_AT_ONCE = 5000
TOKENS_AT_ONCE = 1000
FIRST_AT_ONCE = 500  # more would hold up the searches of readers meanwhile
MOST_READ = 10_000  # chunks that the words of an index are taken from, and whose facts are kept
MOST_CHUNKS = 5000  # of the pages that are read for one question
OF_CHUNKS = {"excludes": ["*embedding", "tokens", "units"]}


class OpenSearchGeneration:
    """See `app.index.protocols.Generation`. `published` says in which indices its rows are."""

    def __init__(self, connection: Connection, published: Published, ef_search: int = 0) -> None:
        self._connection = connection
        self.published = published
        self._ef_search = ef_search
        self._rows = Rows(connection, published.info.id)
        self._translation_sets: Shared[TranslationSets] = Shared()
        self._vocabulary: Shared[Vocabulary] = Shared()
        self._language_centres: Shared[Mapping[str, Vector]] = Shared()
        self._facts: Shared[Mapping[str, Candidate]] = Shared()

    @property
    def info(self) -> GenerationInfo:
        """The facts about this generation."""
        return self.published.info

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg, each best first, with raw scores."""
        dimension = self.info.recipe.dimension
        if query.vector is not None and len(query.vector) != dimension:
            raise IndexMismatch(
                f"The question's vector has {len(query.vector)} numbers, but the index was built with {dimension} "
                f"({self.info.recipe.embedder}). Set that embedder again, or ingest the sites with the new one."
            )
        candidates_of, summaries = await self._found(query)
        vector, indirect = candidates_of.get("vector", ()), dict[Indirect, tuple[Candidate, ...]]()
        if questions := candidates_of.get("questions"):
            indirect["questions"] = questions
        if summaries:
            indirect["summaries"] = await self._summaries(vector, summaries, query)
        return Legs(candidates_of.get("lexical", ()), vector, indirect=indirect)

    async def _found(self, query: Query) -> tuple[dict[str, tuple[Candidate, ...]], Mapping[str, float]]:
        """The candidates of each leg, and the pages with the nearest summaries with their cosines."""
        known = await self._facts.get(self._read_facts)
        names, lines = _searches(self.published, query, self._ef_search, SHOWN[:1] if known else SHOWN)
        if not names:
            return {}, {}
        answer = await self._connection.call("POST", "/_msearch", lines, params={"filter_path": ANSWER})
        responses = dict(zip(names, answer["responses"], strict=True))
        for name, response in responses.items():
            if "error" in response:
                raise self._connection.rejection(int(response["status"]), response["error"], f"the {name} search")
        summaries = _summary_hits(responses.pop("summaries", {}))
        candidates_of = {name: _candidates(name, response, known) for name, response in responses.items()}
        return candidates_of, summaries

    async def _read_facts(self) -> Mapping[str, Candidate]:
        """The chunks by id, without a score, so that searches return ids alone; none in a larger index than of `MOST_READ`."""
        known = await self._listed("chunk") if self.info.chunks <= MOST_READ else ()
        return {one.id: one for one in known}

    async def _summaries(
        self, leg: tuple[Candidate, ...], summaries: Mapping[str, float], query: Query
    ) -> tuple[Candidate, ...]:
        """The leg of the summaries, whose chunks are those of the vector leg, and for pages without one the nearest of the page."""
        if urls := pages_without_chunks(leg, summaries):
            body, params = _best_of_pages(urls, query, self.info.id), ALL_SHARDS
            answer = await self._connection.call("POST", f"/{self.published.chunks}/_search", body, params=params)
            leg = (*leg, *_candidates("vector", answer))
        return of_summaries(summaries, leg)

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids."""
        chunks = await self._chunks(len(ids), {"terms": {"chunk": ids}})
        return tuple(chunks[id_] for id_ in ids if id_ in chunks)

    async def chunks_of(self, urls: Collection[str]) -> Mapping[str, tuple[Chunk, ...]]:
        """The chunks of each of these pages, in order; pages without chunks are left out."""
        selected = {"terms": {"metadata.url": sorted(urls)}}
        chunks, pages = await asyncio.gather(
            self._chunks(MOST_CHUNKS, selected),
            self._sources(self.published.pages, len(urls), ["chunk_ids", "metadata.url"], selected),
        )
        ids = {page["metadata"]["url"]: page.get("chunk_ids", ()) for page in pages}
        return {url: tuple(chunks[id_] for id_ in own if id_ in chunks) for url, own in ids.items() if own}

    async def vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of the texts of these chunks."""
        fields = ["chunk", "embedding"]
        found = await self._sources(self.published.chunks, len(ids), fields, {"terms": {"chunk": ids}})
        return {row["chunk"]: row["embedding"] for row in found if "embedding" in row}

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of the pages with these addresses."""
        fields = ["metadata.url", "plain"]
        pages = await self._sources(self.published.pages, len(urls), fields, {"terms": {"metadata.url": urls}})
        return {page["metadata"]["url"]: PlainText.of_json(page["plain"]) for page in pages}

    async def units(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        """The units of these chunks."""
        if not ids:
            return {}
        body = {"size": len(ids), "stored_fields": "_none_", "docvalue_fields": ["chunk", "units"]}
        selected = {"terms": {"chunk": ids}}
        hits = await self._rows.hits(self.published.chunks, body, selected, parts="fields")
        # the server leaves out the padding
        fields = [hit["fields"] for hit in hits]
        return {row["chunk"][0]: b64decode(row["units"][0] + "==") for row in fields if "units" in row}

    async def _chunks(self, most: int, selected: dict[str, Any]) -> dict[str, Chunk]:
        found = await self._sources(self.published.chunks, most, OF_CHUNKS, selected)
        return {row["chunk"]: to_chunk(row) for row in found}

    async def _sources(
        self, index: str, most: int, fields: object, *selected: dict[str, Any], **more: Any
    ) -> list[dict[str, Any]]:
        """These fields of at most so many rows of this generation that match."""
        if not most:
            return []
        body = {"size": most, "_source": fields, **more}
        hits = await self._rows.hits(index, body, *selected, parts="_source")
        return [hit["_source"] for hit in hits]

    async def translation_sets(self) -> TranslationSets:
        """The pages that are translations of each other. The first call reads them all."""
        return await self._translation_sets.get(self._read_translation_sets)

    async def _read_translation_sets(self) -> TranslationSets:
        facts: list[tuple[str, str, str]] = []
        body = {"size": PAGES_AT_ONCE, "stored_fields": "_none_", "docvalue_fields": SET_FACTS}
        body["sort"] = [{"metadata.url": "asc"}]
        selected = {"exists": {"field": "metadata.translation_set"}}
        async for hits in self._rows.batches(self.published.pages, body, selected, parts="fields"):
            facts += (tuple(hit["fields"][name][0] for name in SET_FACTS) for hit in hits)
        return TranslationSets.read(facts)

    async def counterparts(self, pairs: Collection[Pair]) -> Mapping[Pair, Counterparts]:
        """The counterparts of each of these pairs."""
        urls = sorted({url for pair in pairs for url in pair})
        fields = ["metadata.url", "chunk_ids", "record.counterparts"]
        rows = await self._sources(self.published.pages, len(urls), fields, {"terms": {"metadata.url": urls}})
        pages = {row["metadata"]["url"]: Derived.compared(row | row.get("record", {})) for row in rows}
        return await counterparts_of(pairs, pages, self.chunks_of)

    async def language_centres(self) -> Mapping[str, Vector]:
        """The mean vector of the chunks in each language."""
        return await self._language_centres.get(self._read_language_centres)

    async def _read_language_centres(self) -> Mapping[str, Vector]:
        languages, has_vector = self.info.languages, {"exists": {"field": "embedding"}}
        chunks, lowest = self.published.chunks, [{"chunk": "asc"}]
        of_languages = [{"term": {"metadata.language": code}} for code in languages]
        samples = await asyncio.gather(
            *(self._sources(chunks, SAMPLE, ["embedding"], one, has_vector, sort=lowest) for one in of_languages)
        )
        return centres((code, row["embedding"]) for code, of in zip(languages, samples, strict=True) for row in of)

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens."""
        if not tokens:
            return {}
        filters = {str(number): {"term": {"tokens": token}} for number, token in enumerate(tokens)}
        body = {
            "size": 0,
            "query": {"bool": {"filter": alive(self.info.id)}},
            "aggs": {"tokens": {"filters": {"filters": filters}}},
        }
        params = {"filter_path": "aggregations", **ALL_SHARDS}
        answer = await self._connection.call("POST", f"/{self.published.chunks}/_search", body, params=params)
        buckets = answer["aggregations"]["tokens"]["buckets"]
        return {token: buckets[str(number)]["doc_count"] for number, token in enumerate(tokens)}

    async def vocabulary(self) -> Vocabulary:
        """The words of the chunks; of the 10,000 with the lowest ids in a larger index. The first call reads them."""
        return await self._vocabulary.get(self._read_vocabulary)

    async def _read_vocabulary(self) -> Vocabulary:
        counts: Counter[str] = Counter()
        body = {"size": TOKENS_AT_ONCE, "_source": ["tokens"], "sort": [{"chunk": "asc"}]}
        read = 0
        async for hits in self._rows.batches(self.published.chunks, body, parts="_source.tokens"):
            counts.update(await asyncio.to_thread(chunks_with, [hit["_source"]["tokens"] for hit in hits]))
            if (read := read + len(hits)) >= MOST_READ:
                break
        return await asyncio.to_thread(Vocabulary.of, counts)

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown, by its public address."""
        this = {"term": {"metadata.url": url}}
        pages = await self._sources(self.published.pages, 1, {"excludes": ["plain", "*embedding"]}, this)
        return to_page(pages[0]) if pages else None

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""
        sources = self._rows.all(self.published.pages, leave_out=("markdown", "plain"))
        return tuple([to_page(source) async for _, source in sources])

    async def first_chunks(self) -> tuple[Candidate, ...]:
        """The first chunk of each page."""
        first = ({"term": {"metadata.position": 0}}, {"term": {"metadata.translated_from": ""}})
        return await self._listed("metadata.url", *first)

    async def _listed(self, order: str, *selected: dict[str, Any]) -> tuple[Candidate, ...]:
        """The chunks that match, without a score, from doc values: reading the rows of 15,000 takes the server 5 s."""
        body = {"size": FIRST_AT_ONCE, "stored_fields": "_none_", "docvalue_fields": SHOWN, "sort": [{order: "asc"}]}
        batches = self._rows.batches(self.published.chunks, body, *selected, parts="fields")
        return tuple([_unscored(hit) async for hits in batches for hit in hits])

    async def lost(self) -> str:
        """Empty: a damage of a server's index is an error."""
        return ""


def _searches(
    published: Published, query: Query, ef_search: int = 0, shown: Sequence[str] = SHOWN
) -> tuple[list[str], bytes]:
    """The names of the searches that the query needs, and the body of `_msearch` with one for each, for these fields of the hits.

    If the index has questions or summaries, they are searched along with the vector leg.
    """
    recipe = published.info.recipe
    restrict = [*alive(published.info.id), *_restrictions(query.filters)]
    header = {"index": published.chunks, **ALL_SHARDS}
    searches: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    # the scores of a row are added up
    should = [{"match": {"tokens": {"query": words, "boost": weight}}} for words, weight in searched_terms(query.texts)]
    if should:
        words = {"bool": {"filter": restrict, "should": should, "minimum_should_match": 1}}
        searches["lexical"] = header | WORDS_OF_ALL, _body(words, query.depth, shown)
    if query.vector is not None and any(query.vector):  # one of zeros only has no cosine
        searches["vector"] = header, _body(_vector(query, restrict, ef_search=ef_search), query.depth, shown)
        if recipe.questions:
            near = _vector(query, restrict, "questions_embedding", ef_search=ef_search)
            searches["questions"] = header, _body(near, query.depth, shown)
        if recipe.summaries:
            near = _vector(replace(query, depth=PAGES), restrict, "summary_embedding")
            body = _body(near, PAGES) | {"docvalue_fields": ["metadata.url"]}
            searches["summaries"] = header | {"index": published.pages}, body
    return list(searches), to_lines(*(line for search in searches.values() for line in search))


def _summary_hits(answer: Mapping[str, Any]) -> dict[str, float]:
    """The cosines of the pages in the response to the search of summaries, best first."""
    hits = answer.get("hits", {}).get("hits", ())
    return {hit["fields"]["metadata.url"][0]: hit["_score"] * 2.0 - 1.0 for hit in hits}


def _best_of_pages(urls: Sequence[str], query: Query, generation: int) -> dict[str, Any]:
    """A search for the chunk of each of these pages that is nearest to the vector of the query."""
    within = [*alive(generation), *_restrictions(query.filters), {"terms": {"metadata.url": urls}}]
    search = _vector(replace(query, exact=True), within)
    return _body(search, len(urls)) | {"collapse": {"field": "metadata.url"}}


NONE: Mapping[str, Candidate] = {}
_candidate: Callable[[tuple[Any, ...]], Candidate] = partial(tuple.__new__, Candidate)


def _unscored(hit: Mapping[str, Any]) -> Candidate:
    """The chunk in a hit with the fields `SHOWN`, without a score."""
    fields = hit["fields"]
    url, language, collection = (fields[f"metadata.{name}"][0] for name in ("url", "language", "collection"))
    dated = fields["metadata.dated"][0] if "metadata.dated" in fields else ""
    versions = tuple(fields.get("metadata.versions", ()))
    return Candidate(fields["chunk"][0], url, language, 0.0, dated, versions, collection)


def _candidates(leg: str, answer: Mapping[str, Any], known: Mapping[str, Candidate] = NONE) -> tuple[Candidate, ...]:
    """The candidates in the response to one search, which has ids alone of those that are `known`.

    Lexical scores are BM25, vector scores are cosines.
    """
    # Lucene's score is (1 + cosine) / 2
    slope, offset = (1.0, 0.0) if leg == "lexical" else (2.0, -1.0)
    hits = answer.get("hits", {}).get("hits", ())
    known = known or {one.id: one for one in map(_unscored, hits)}
    # a list, and tuples without a call of Python: this is done for hundreds of candidates per question
    return tuple(
        [
            _candidate((id_, url, language, hit["_score"] * slope + offset, dated, versions, collection))
            for hit in hits
            for id_, url, language, _, dated, versions, collection in (known[hit["fields"]["chunk"][0]],)
        ]
    )


def _restrictions(filters: Filters) -> list[dict[str, Any]]:
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


def _body(search: dict[str, Any], depth: int, shown: Sequence[str] = SHOWN) -> dict[str, Any]:
    return {
        "size": depth,
        "query": search,
        "track_total_hits": False,
        "stored_fields": "_none_",  # reading the stored text of a row costs more than finding the row
        "docvalue_fields": shown,
    }


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
