"""The store on an OpenSearch server: all generations with the same recipe share one index of chunks, behind an alias."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.core.errors import IndexDamaged, IndexMismatch, NoIndex, SettingsError, StoreError
from app.core.types import Candidate, Chunk, GenerationInfo, Legs, Page, PlainText, Query, Recipe
from app.index.opensearch.catalog import Catalog, Published, State, pages_of
from app.index.opensearch.connection import Connection
from app.index.opensearch.draft import OpenSearchDraft, Plan
from app.index.opensearch.lock import WriterLock
from app.index.opensearch.mapping import VERSION, chunk_index, page_index
from app.index.opensearch.query import (
    ANSWER,
    PAGES_AT_ONCE,
    SET_FACTS,
    best_of_pages,
    candidates,
    legs,
    of_pages,
    summary_hits,
    translations,
)
from app.index.opensearch.rows import alive, to_chunk, to_page, to_plain_text
from app.index.opensearch.writing import discard, rows
from app.index.ranking.nearest import nearest
from app.index.ranking.summaries import SummaryHit, pages_without_chunks, raised_to_summaries
from app.index.shared import Shared
from app.index.translation_sets import TranslationSets

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")


class OpenSearchGeneration:
    """See `app.index.protocols.Generation`."""

    def __init__(self, connection: Connection, published: Published) -> None:
        self._connection = connection
        self._published = published
        self._translation_sets: Shared[TranslationSets] = Shared()

    @property
    def info(self) -> GenerationInfo:
        """The facts about this generation."""
        return self._published.info

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg, each best first, with raw scores."""
        dimension = self.info.recipe.dimension
        if query.vector is not None and len(query.vector) != dimension:
            raise IndexMismatch(
                f"The question's vector has {len(query.vector)} numbers, but the index was built with {dimension} "
                f"({self.info.recipe.embedder}). Set that embedder again, or ingest the sites with the new one."
            )
        names, lines = legs(self._published, query)
        if not names:
            return Legs()
        answer = await self._connection.call("POST", "/_msearch", lines, params={"filter_path": ANSWER})
        found: dict[str, Any] = {}
        summaries: tuple[SummaryHit, ...] = ()
        for name, response in zip(names, answer["responses"], strict=True):
            if "error" in response:
                raise self._connection.rejection(int(response["status"]), response["error"], f"the {name} search")
            if name == "summaries":
                summaries = summary_hits(response)
            else:
                found[name] = candidates(name, response)
        if "questions" in found:
            found["vector"] = nearest(found["vector"], found.pop("questions"))
        if summaries:
            found["vector"] = await self._with_summaries(found["vector"], summaries, query)
        return Legs(**found)

    async def _with_summaries(
        self, leg: tuple[Candidate, ...], summaries: tuple[SummaryHit, ...], query: Query
    ) -> tuple[Candidate, ...]:
        if urls := pages_without_chunks(leg, summaries, query.depth):
            body, params = best_of_pages(urls, query, self.info.id), {"preference": "docs-assistant"}
            answer = await self._connection.call("POST", f"/{self._published.chunks}/_search", body, params=params)
            leg = (*leg, *candidates("vector", answer))
        return raised_to_summaries(leg, summaries, query.depth)

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids."""
        if not ids:
            return ()
        body = {
            "size": len(ids),
            "query": {"bool": {"filter": [{"terms": {"chunk": ids}}, *alive(self.info.id)]}},
            "_source": {"excludes": ["*embedding", "tokens"]},
            "track_total_hits": False,
        }
        params = {"filter_path": "hits.hits._source", "preference": "docs-assistant"}
        answer = await self._connection.call("POST", f"/{self._published.chunks}/_search", body, params=params)
        chunks = {hit["_source"]["chunk"]: to_chunk(hit["_source"]) for hit in answer.get("hits", {}).get("hits", ())}
        return tuple(chunks[id_] for id_ in ids if id_ in chunks)

    async def translation_sets(self) -> TranslationSets:
        """The pages that are translations of each other. The first call reads them all."""
        return await self._translation_sets.get(self._read_translation_sets)

    async def _read_translation_sets(self) -> TranslationSets:
        found: list[tuple[str, str, str]] = []
        params = {"filter_path": "hits.hits.fields,hits.hits.sort", "preference": "docs-assistant"}
        after: Sequence[str] = ()
        while True:
            body = translations(self.info.id, after)
            answer = await self._connection.call("POST", f"/{self._published.pages}/_search", body, params=params)
            hits = answer.get("hits", {}).get("hits", ())
            found += (tuple(hit["fields"][name][0] for name in SET_FACTS) for hit in hits)
            if len(hits) < PAGES_AT_ONCE:
                return TranslationSets.read(found)
            after = hits[-1]["sort"]

    async def chunks_of(self, urls: Collection[str]) -> Mapping[str, tuple[Chunk, ...]]:
        """The chunks of each of these pages, in order; pages without chunks are left out."""
        lines = of_pages(self._published.chunks, self._published.pages, urls, self.info.id)
        params = {"filter_path": "responses.hits.hits._source,responses.error,responses.status"}
        answer = await self._connection.call("POST", "/_msearch", lines, params=params)
        for response in answer["responses"]:
            if "error" in response:
                raise self._connection.rejection(int(response["status"]), response["error"], "the search for pages")
        rows, pages = ([hit["_source"] for hit in r.get("hits", {}).get("hits", ())] for r in answer["responses"])
        chunks = {row["chunk"]: to_chunk(row) for row in rows}
        ids = {page["metadata"]["url"]: page.get("chunk_ids", ()) for page in pages}
        return {url: tuple(chunks[id_] for id_ in own if id_ in chunks) for url, own in ids.items() if own}

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
        params = {"filter_path": "aggregations", "preference": "docs-assistant"}
        answer = await self._connection.call("POST", f"/{self._published.chunks}/_search", body, params=params)
        buckets = answer["aggregations"]["tokens"]["buckets"]
        return {token: buckets[str(number)]["doc_count"] for number, token in enumerate(tokens)}

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of the pages with these addresses."""
        if not urls:
            return {}
        body = {
            "size": len(urls),
            "query": {"bool": {"filter": [{"terms": {"metadata.url": urls}}, *alive(self.info.id)]}},
            "_source": ["metadata.url", "plain"],
            "track_total_hits": False,
        }
        params = {"filter_path": "hits.hits._source", "preference": "docs-assistant"}
        answer = await self._connection.call("POST", f"/{self._published.pages}/_search", body, params=params)
        found = [hit["_source"] for hit in answer.get("hits", {}).get("hits", ())]
        return {source["metadata"]["url"]: to_plain_text(source) for source in found}

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown, by its public address."""
        only = ({"term": {"metadata.url": url}},)
        found = rows(self._connection, self._published.pages, self.info.id, only=only, leave_out=("plain",))
        return next((to_page(source) for source in [source async for _, source in found]), None)

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""
        found = rows(self._connection, self._published.pages, self.info.id, leave_out=("markdown", "plain"))
        return tuple([to_page(source) async for _, source in found])


class OpenSearchStore:
    """See `app.index.protocols.Store`. Opens its connections with the first call.

    Times are in seconds: `timeout` applies to one call; the lock of a killed writer expires after `lock_seconds`; a
    reader caches the live generation for `notice_seconds` (0: asks with each call, 0.3 ms).
    """

    def __init__(  # noqa: PLR0913 - settings, all by name
        self,
        url: str,
        *,
        index: str,
        keep: int = 2,
        ca: str = "",
        timeout: float = 10.0,
        auth: tuple[str, str] | None = None,
        lock_seconds: float = 60.0,
        notice_seconds: float = 0.0,
    ) -> None:
        if not NAME.fullmatch(index):
            raise SettingsError(
                f"DOCS_STORE names the index {index!r}: use lower-case letters, digits and - _ . only, at most 200."
            )
        self._connection = Connection(url, ca=ca, timeout=timeout, auth=auth)
        self._catalog = Catalog(self._connection, index)
        self._keep = keep
        self._lock_seconds = lock_seconds
        self._notice_seconds = notice_seconds
        self._pinned: OpenSearchGeneration | None = None
        self._pointer: tuple[str, int] | None = None
        self._until = 0.0
        self._looking: asyncio.Task[OpenSearchGeneration] | None = None

    async def live(self) -> OpenSearchGeneration:
        """The live generation. Raises `NoIndex` if nothing was published yet."""
        if self._pinned is not None and time.monotonic() < self._until:
            return self._pinned
        if self._looking is None or self._looking.done() or self._looking.get_loop() is not asyncio.get_running_loop():
            self._looking = asyncio.create_task(self._look())
            # callers receive the error; without callers, mark it as retrieved
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._looking)

    async def draft(self, recipe: Recipe, *, rebuild: bool = False) -> OpenSearchDraft:
        """Begin the next generation. Raises `StoreBusy` while any process writes another draft.

        If possible, the draft acquires the writer's lock with its first write, so that a run without changes writes nothing.
        """
        await self._catalog.prepare()
        lock = WriterLock(self._connection, self._catalog.meta, self._lock_seconds)
        found = await self._catalog.live() if not rebuild and await lock.is_free() else None
        try:
            if found is not None and found[0].info.id == found[1].last_id and _shares(found[0], recipe):
                plan = self._plan(*found, recipe)
            else:  # an index must be created or cleaned up first
                await lock.acquire()
                plan = await (self._rebuilt(recipe) if rebuild else self._prepared(recipe))
            draft = OpenSearchDraft(self._connection, self._catalog, lock, plan, self._forget)
            await draft.load()
        except BaseException:
            await lock.release()
            raise
        return draft

    async def generations(self) -> tuple[GenerationInfo, ...]:
        """The kept generations, newest first, including the live one."""
        found = await self._catalog.live()
        return tuple(published.info for published in found[1].kept) if found else ()

    async def rollback(self) -> GenerationInfo:
        """Make the previous generation live again. Raises `NoIndex` if none is kept."""
        if await self._catalog.pointer() is None:
            raise NoIndex(f"Nothing is indexed in {self._catalog.name} yet, so there is nothing to go back to.")
        lock = WriterLock(self._connection, self._catalog.meta, self._lock_seconds)
        await lock.acquire()
        try:
            found = await self._catalog.live()
            kept = found[1].kept if found else ()
            if len(kept) < 2:
                raise NoIndex(
                    f"No generation before the live one is kept in {self._catalog.name}. DOCS_GENERATIONS says how "
                    "many are; ingest the sites again instead."
                )
            await lock.confirm()
            await self._catalog.point(kept[1])
        finally:
            await lock.release()
            self._forget()
        return kept[1].info

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        self._forget()
        await self._connection.close()

    def _forget(self) -> None:
        self._until = 0.0
        self._looking = None  # a running lookup may have read the old pointer

    async def _look(self) -> OpenSearchGeneration:
        pointer = await self._catalog.pointer()
        if pointer is None:
            raise NoIndex(
                f"Nothing is indexed in {self._catalog.name} at {self._connection.url} yet. "
                "Run docs-assistant ingest with the address of a site."
            )
        if self._pinned is None or pointer != self._pointer:
            found = await self._catalog.live()
            if found is None:
                raise NoIndex(
                    f"The alias {self._catalog.name} at {self._connection.url} is gone; ingest the sites again."
                )
            self._pinned = OpenSearchGeneration(self._connection, found[0])
            self._pointer = (found[0].chunks, found[0].info.id)
        if self._looking is asyncio.current_task():
            self._until = time.monotonic() + self._notice_seconds
        return self._pinned

    async def _prepared(self, recipe: Recipe) -> Plan:
        """Clean up after an aborted run, and create the indices for a rebuild."""
        found = await self._catalog.live()
        live, state = found or (None, replace(await self._catalog.state(), kept=(), fading=()))
        plan = self._plan(live, state, recipe)
        await discard(self._connection, self._catalog, plan.state)
        if plan.base is None:
            await self._catalog.write(plan.state)
            await self._make(plan.target.chunks, recipe)
        return plan

    async def _rebuilt(self, recipe: Recipe) -> Plan:
        """Create new indices beside the existing ones, which may be unreadable and are kept until the publish."""
        try:
            state = await self._catalog.state()
        except IndexDamaged:
            state = State()
        state = replace(state, last_index=max(state.last_index, await self._catalog.highest()))
        plan = replace(self._plan(None, state, recipe), replaces_all=True)
        await self._catalog.write(plan.state)
        await self._make(plan.target.chunks, recipe)
        return plan

    def _plan(self, live: Published | None, state: State, recipe: Recipe) -> Plan:
        """Assign the number of the next generation. It becomes permanent with the first write."""
        base = live if live is not None and _shares(live, recipe) else None
        state = replace(state.with_next_id(), last_index=state.last_index + (base is None))
        chunks = base.chunks if base else f"{self._catalog.name}-{state.last_index}"
        info = GenerationInfo(state.last_id, recipe, built_at="", languages=(), pages=0, chunks=0)
        return Plan(live, base, Published(info, chunks, VERSION), state, self._keep)

    async def _make(self, chunks: str, recipe: Recipe) -> None:
        bodies = {
            chunks: chunk_index(recipe.dimension, questions=bool(recipe.questions)),
            pages_of(chunks): page_index(recipe.dimension if recipe.summaries else 0),
        }
        for name, body in bodies.items():
            answer = await self._connection.call("PUT", f"/{name}", body, timeout=60)
            if not answer.get("shards_acknowledged"):
                raise StoreError(
                    f"OpenSearch at {self._connection.url} made the index {name}, but no node took it. "
                    "See its cluster health: disks may be full."
                )


def _shares(live: Published, recipe: Recipe) -> bool:
    """Whether a draft with this recipe can start from the live generation."""
    return (live.info.recipe, live.layout) == (recipe, VERSION)
