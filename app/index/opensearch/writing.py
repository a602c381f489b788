"""Writes rows in batches, and reads, counts and deletes rows by query; one process at a time, by a lock that its owner renews."""

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.core.errors import StoreBusy, StoreError
from app.index.opensearch.catalog import Catalog, State
from app.index.opensearch.connection import ALL_SHARDS, SLOW, Connection, to_lines
from app.index.opensearch.rows import OPEN, alive

log = logging.getLogger(__name__)

_held: set[str] = set()
"""Tokens of active writers in this process. A lock of this process with another token was left over by a failed release."""


class WriterLock:
    """The lock of an index. After a writer is killed, it lasts `seconds` longer, but not on the same machine."""

    def __init__(self, connection: Connection, meta: str, seconds: float) -> None:
        self._connection = connection
        self._path = f"/{meta}/_doc/lock"
        self._seconds = seconds
        self._token = uuid.uuid4().hex
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._renewed = 0.0
        self._version: dict[str, int] = {}
        self._heart: asyncio.Task[None] | None = None
        self._renewing = asyncio.Lock()

    async def acquire(self) -> None:
        """Acquire the lock and keep renewing it. Raises `StoreBusy` while another writer holds it."""
        _held.add(self._token)
        if not await self._write({"op_type": "create"}):
            await self._take_over()
        self._heart = asyncio.create_task(self._beat())

    async def confirm(self) -> None:
        """Check that the lock is still held. Raises `StoreBusy` if it expired and another writer has taken it."""
        async with self._renewing:
            if time.time() - self._renewed > self._seconds / 2 and not await self._write(self._version):
                raise StoreBusy(
                    f"This run's lock on {self._path} went to another writer: it was not renewed for "
                    f"{self._seconds:g} s. Nothing was published; start it again."
                )

    async def release(self) -> None:
        """Release the lock. If the server can't be reached, the lock expires by itself."""
        if self._heart is not None:
            self._heart.cancel()
            with suppress(asyncio.CancelledError):
                await self._heart
            self._heart = None
        _held.discard(self._token)
        if self._version:
            version, self._version = self._version, {}
            try:
                await self._connection.call("DELETE", self._path, params=version, allow=(404, 409))
            except StoreError as error:
                log.warning("The writer's lock stays until it expires: %s", error)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / 3)
            try:
                async with self._renewing:
                    if not await self._write(self._version):
                        return  # lost; `confirm` raises
            except StoreError as error:
                log.warning("The writer's lock could not be renewed: %s", error)

    async def _write(self, condition: dict[str, Any]) -> bool:
        """Write the document with a new expiry if the condition holds."""
        now = time.time()
        body = {
            "token": self._token,
            "host": socket.gethostname(),
            "machine": _machine(),
            "pid": os.getpid(),
            "since": self._since,
            "expires": now + self._seconds,
        }
        answer = await self._connection.call("PUT", self._path, body, params=condition, allow=(409,))
        if answer is None:
            return await self._is_ours()
        self._version, self._renewed = _version_of(answer), now
        return True

    async def _is_ours(self) -> bool:
        """True if a rejected write had succeeded before: the response to a first attempt may be lost."""
        lock = await self._connection.call("GET", self._path, allow=(404,))
        if not lock or lock["_source"]["token"] != self._token:
            return False
        self._version, self._renewed = _version_of(lock), lock["_source"]["expires"] - self._seconds
        return True

    async def _take_over(self) -> None:
        lock = await self._connection.call("GET", self._path, allow=(404,))
        owner = lock["_source"] if lock else {}
        lives = lock and owner["expires"] > time.time() and not _is_dead(owner)
        if lives or not await self._write(_version_of(lock) if lock else {"op_type": "create"}):
            raise StoreBusy(
                f"Another run is writing to this index: process {owner.get('pid', '?')} on {owner.get('host', '?')}, since "
                f"{owner.get('since', 'just now')}. Wait until it is done; if it was killed, its lock ends by itself "
                f"{self._seconds:g} s after its last sign of life."
            )


def _version_of(document: Mapping[str, Any]) -> dict[str, int]:
    return {"if_seq_no": document["_seq_no"], "if_primary_term": document["_primary_term"]}


def _machine() -> str:
    """Identifies this boot of this machine and, on Linux, this container: process ids are unique only within it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode()}"


def _is_dead(owner: dict[str, Any]) -> bool:
    """True if the owner ran on this machine, or in this process, and no longer exists."""
    if owner["machine"] != _machine():
        return False
    if owner["pid"] == os.getpid():
        return owner["token"] not in _held
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:  # of another user
        pass
    return False


BATCH_BYTES = 1_000_000
BATCH_ROWS = 200
READ_ROWS = 500


class Batch:
    """Collects writes to a pair of indices and sends them in order, a few hundred at a time, while the next are collected.

    New indices are made meanwhile: `making` ends when they are there.
    """

    def __init__(self, connection: Connection, lock: WriterLock, making: asyncio.Task[None] | None = None) -> None:
        self._connection = connection
        self._lock = lock
        self._making = self._sending = making
        self._lines: list[bytes] = []
        self._bytes = 0

    async def index(self, index: str, row_id: str, row: dict[str, Any]) -> None:
        """Insert or replace the row with this id."""
        await self._add(to_lines({"index": {"_index": index, "_id": row_id}}, row))

    async def update(self, index: str, row_id: str, fields: dict[str, Any]) -> None:
        """Change fields of an existing row."""
        await self._add(to_lines({"update": {"_index": index, "_id": row_id}}, {"doc": fields}))

    async def flush(self) -> None:
        """Send the collected writes, and wait for all. Raises `StoreError` with the first failure."""
        await self._send()
        await self._sent()

    async def stop(self) -> None:
        """Send nothing more. Indices that are being made are there afterwards, so that they can be deleted."""
        if self._sending and self._sending is not self._making:
            self._sending.cancel()
        await asyncio.gather(*filter(None, (self._making, self._sending)), return_exceptions=True)

    async def _send(self) -> None:
        """Begin to send the collected writes, after those before them."""
        await self._sent()
        lines, self._lines, self._bytes = self._lines, [], 0
        if lines:
            await self._lock.confirm()
            self._sending = asyncio.create_task(self._connection.bulk(b"".join(lines)))

    async def _sent(self) -> None:
        if self._sending:
            await asyncio.shield(self._sending)  # `stop` decides what becomes of it

    async def refresh(self, index: str) -> None:
        """Make the sent writes visible to searches."""
        await self._connection.call("POST", f"/{index}/_refresh", timeout=SLOW)

    async def _add(self, lines: bytes) -> None:
        self._lines.append(lines)
        self._bytes += len(lines)
        if len(self._lines) >= BATCH_ROWS or self._bytes >= BATCH_BYTES:
            await self._send()


class Rows:
    """Reads the rows of one generation."""

    def __init__(self, connection: Connection, generation: int) -> None:
        self._connection, self._generation = connection, generation

    async def hits(
        self, index: str, body: Mapping[str, Any], *selected: dict[str, Any], parts: str = "_id,_source"
    ) -> list[dict[str, Any]]:
        """The hits of a search among the rows that match all filters; `parts` are those read of each hit."""
        filters = [*alive(self._generation), *selected]
        search = {"query": {"bool": {"filter": filters}}, "track_total_hits": False, **body}
        path = ",".join(f"hits.hits.{part}" for part in (*parts.split(","), "sort"))
        params = {"filter_path": path, **ALL_SHARDS}
        answer = await self._connection.call("POST", f"/{index}/_search", search, params=params)
        hits: list[dict[str, Any]] = answer.get("hits", {}).get("hits", [])
        return hits

    async def batches(
        self, index: str, body: Mapping[str, Any], *selected: dict[str, Any], parts: str = "_id,_source"
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """All hits of a sorted search, as many at once as its `size`."""
        after: dict[str, Any] = {}
        while True:
            hits = await self.hits(index, {**body, **after}, *selected, parts=parts)
            yield hits
            if len(hits) < body["size"]:
                return
            after = {"search_after": hits[-1]["sort"]}

    async def all(
        self, index: str, *selected: dict[str, Any], leave_out: Sequence[str] = ()
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Id and source of each row that matches all filters, by id."""
        order = "metadata.url" if index.endswith("-pages") else "chunk"
        body = {"size": READ_ROWS, "_source": {"excludes": [*leave_out, "*embedding"]}, "sort": [{order: "asc"}]}
        async for hits in self.batches(index, body, *selected):
            for hit in hits:
                yield hit["_id"], hit["_source"]


async def searched_of(connection: Connection, index: str, row_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The vectors of the texts in these rows, and their units, as parts of a row by its id."""
    if not row_ids:
        return {}
    params = {"_source_includes": "embedding,units"}
    answer = await connection.call("POST", f"/{index}/_mget", {"ids": row_ids}, params=params)
    for row in answer["docs"]:
        if "error" in row:
            raise connection.rejection(500, row["error"], f"to read row {row['_id']} of {index}")
    return {row["_id"]: row["_source"] for row in answer["docs"]}


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
        same = [published for published in used if published.chunks == chunks]
        newest, oldest = (of(published.info.id for published in same) for of in (max, min))
        for index in (chunks, same[0].pages):
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
