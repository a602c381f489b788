"""Writes rows in batches, and reads, counts and deletes rows by query."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from app.core.types import Vector
from app.index.opensearch.catalog import Catalog, State
from app.index.opensearch.connection import ALL_SHARDS, SLOW, Connection, to_lines
from app.index.opensearch.lock import WriterLock
from app.index.opensearch.mapping import OPEN
from app.index.opensearch.rows import alive

BATCH_BYTES = 1_000_000
BATCH_ROWS = 200
READ_ROWS = 500


class Batch:
    """Collects writes to a pair of indices and sends them in order, a few hundred at a time."""

    def __init__(self, connection: Connection, lock: WriterLock) -> None:
        self._connection = connection
        self._lock = lock
        self._lines: list[bytes] = []
        self._bytes = 0

    async def index(self, index: str, row_id: str, row: dict[str, Any]) -> None:
        """Insert or replace the row with this id."""
        await self._add(to_lines({"index": {"_index": index, "_id": row_id}}, row))

    async def update(self, index: str, row_id: str, fields: dict[str, Any]) -> None:
        """Change fields of an existing row."""
        await self._add(to_lines({"update": {"_index": index, "_id": row_id}}, {"doc": fields}))

    async def flush(self) -> None:
        """Send the collected writes. Raises `StoreError` with the first failure."""
        lines, self._lines, self._bytes = self._lines, [], 0
        if lines:
            await self._lock.confirm()
            await self._connection.bulk(b"".join(lines))

    async def refresh(self, index: str) -> None:
        """Make the sent writes visible to searches."""
        await self._connection.call("POST", f"/{index}/_refresh", timeout=SLOW)

    async def _add(self, lines: bytes) -> None:
        self._lines.append(lines)
        self._bytes += len(lines)
        if len(self._lines) >= BATCH_ROWS or self._bytes >= BATCH_BYTES:
            await self.flush()


async def rows(
    connection: Connection,
    index: str,
    generation: int,
    *,
    only: Sequence[dict[str, Any]] = (),
    leave_out: Sequence[str] = (),
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Id and source of each row of the generation, by id; `only` are additional filters."""
    body: dict[str, Any] = {
        "size": READ_ROWS,
        "query": {"bool": {"filter": [*alive(generation), *only]}},
        "_source": {"excludes": [*leave_out, "*embedding"]},
        "sort": [{"metadata.url": "asc"}] if index.endswith("-pages") else [{"chunk": "asc"}],
        "track_total_hits": False,
    }
    while True:
        answer = await connection.call("POST", f"/{index}/_search", body, params=ALL_SHARDS)
        hits = answer["hits"]["hits"]
        for hit in hits:
            yield hit["_id"], hit["_source"]
        if len(hits) < READ_ROWS:
            return
        body["search_after"] = hits[-1]["sort"]


async def vectors_of(connection: Connection, index: str, row_ids: Sequence[str]) -> dict[str, Vector]:
    """The vectors of the texts in these rows, by the id of the row."""
    if not row_ids:
        return {}
    params = {"_source_includes": "embedding"}
    answer = await connection.call("POST", f"/{index}/_mget", {"ids": row_ids}, params=params)
    for row in answer["docs"]:
        if "error" in row:
            raise connection.rejection(500, row["error"], f"to read row {row['_id']} of {index}")
    return {row["_id"]: row["_source"]["embedding"] for row in answer["docs"] if "embedding" in row["_source"]}


async def count(connection: Connection, index: str, generation: int, field: str = "") -> tuple[int, tuple[str, ...]]:
    """The number of rows of the generation, and the values of the field."""
    body: dict[str, Any] = {"size": 0, "query": {"bool": {"filter": alive(generation)}}, "track_total_hits": True}
    if field:
        body["aggs"] = {"values": {"terms": {"field": field, "size": 1000}}}
    answer = await connection.call("POST", f"/{index}/_search", body, params=ALL_SHARDS, timeout=60)
    values = answer["aggregations"]["values"]["buckets"] if field else []
    return answer["hits"]["total"]["value"], tuple(sorted(value["key"] for value in values if value["key"]))


async def delete_rows(connection: Connection, index: str, *filters: dict[str, Any]) -> None:
    """Delete the rows that match all filters."""
    await _by_query(connection, index, "_delete_by_query", {"query": {"bool": {"filter": filters}}})


async def reopen_rows(connection: Connection, index: str, *filters: dict[str, Any]) -> None:
    """Make the rows that match all filters valid again."""
    script = {"source": "ctx._source.metadata.gen_to = params.open", "lang": "painless", "params": {"open": OPEN}}
    body = {"query": {"bool": {"filter": filters}}, "script": script}
    await _by_query(connection, index, "_update_by_query", body)


async def discard(connection: Connection, catalog: Catalog, state: State) -> None:
    """Delete all rows and indices that no generation in the state uses."""
    used = (*state.kept, *state.fading)
    for chunks in {published.chunks for published in used}:
        ids = [published.info.id for published in used if published.chunks == chunks]
        newest, oldest = max(ids), min(ids)
        for index in (chunks, next(p.pages for p in used if p.chunks == chunks)):
            await connection.call("POST", f"/{index}/_refresh", timeout=SLOW)
            dead = [{"range": {"metadata.gen_from": {"gt": newest}}}, {"range": {"metadata.gen_to": {"lte": oldest}}}]
            await delete_rows(connection, index, {"bool": {"should": dead, "minimum_should_match": 1}})
            await reopen_rows(connection, index, {"range": {"metadata.gen_to": {"gt": newest, "lt": OPEN}}})
    await catalog.delete_others(state)


async def _by_query(connection: Connection, index: str, what: str, body: dict[str, Any]) -> None:
    params = {"refresh": "true", "conflicts": "proceed"}
    answer = await connection.call("POST", f"/{index}/{what}", body, params=params, timeout=SLOW)
    if answer["failures"]:
        first = answer["failures"][0]
        raise connection.rejection(int(first.get("status", 500)), first.get("cause", first), f"{what} on {index}")
