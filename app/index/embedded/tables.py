"""The door to LanceDB: tables, their columns and indices, and its errors as ours."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from app.core.errors import AssistantError, IndexDamaged, SettingsError, StoreError
from app.index.embedded.clusters import Clusters
from app.index.embedded.pointer import TableVersion, sync

# Each write makes one file (fragment) and version more, and rows that the word index doesn't hold yet
# are searched one by one. Merging copies rows, so it waits until there is enough of any of them.
FRAGMENTS = 12
VERSIONS = 40
UNINDEXED_SHARE = 0.1
NEVER = timedelta(days=36500)
SLACK = timedelta(seconds=1)  # LanceDB counts from its own, later, now

log = logging.getLogger(__name__)

ANY = Clusters()
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)

_OURS = re.compile(r"(chunks|texts|pages|summaries)_[0-9a-f]{12}\.lance")


@contextmanager
def lance_errors(what: str, kind: type[StoreError] = StoreError) -> Iterator[None]:
    """Turn what LanceDB raises into our errors, of that kind; `what` completes "can't"."""
    try:
        yield
    except AssistantError:
        raise
    except Exception as error:  # damaged files make it panic, too, and that has no type to name
        full = any(f"os error {number}" in str(error) for number in FULL)
        told = ". Make room on its disk and start again; what was published stays as it was." if full else ""
        raise kind(f"The embedded store can't {what}: {error}{told}") from error


class Tables:
    """The tables of one directory. Names are never used twice, so a leftover is never mistaken for a table."""

    def __init__(self, directory: Path, clusters: Clusters = ANY) -> None:
        self.directory = directory
        self.clusters = clusters
        self._connection: Any = None

    async def connection(self) -> Any:
        """LanceDB's connection, made at the first call."""
        if self._connection is None:
            lancedb = load_lancedb()
            with lance_errors(f"open {self.directory}"):
                self._connection = await lancedb.connect_async(str(self.directory))
        return self._connection

    async def at(self, pinned: TableVersion) -> Any:
        """A table at one version, whatever is written to it later."""
        connection = await self.connection()
        with lance_errors(f"read {pinned.name} version {pinned.version} in {self.directory}", IndexDamaged):
            table = await connection.open_table(pinned.name)
            await table.checkout(pinned.version)
        return table

    async def create(self, kind: str, content: Any) -> tuple[str, Any]:
        """A new table of that kind from Arrow data or a schema; its name and the table."""
        import pyarrow as pa

        connection = await self.connection()
        name = f"{kind}_{uuid.uuid4().hex[:12]}"
        values = {"schema": content} if isinstance(content, pa.Schema) else {"data": content}
        with lance_errors(f"create a table in {self.directory}"):
            return name, await connection.create_table(name, **values)

    async def open_for_writing(self, pinned: TableVersion) -> Any:
        """The table to write on from that version, leaving behind what a failed run wrote after it."""
        connection = await self.connection()
        with lance_errors(f"write to {pinned.name} in {self.directory}"):
            table = await connection.open_table(pinned.name)
            if await table.version() != pinned.version:
                await table.checkout(pinned.version)
                await table.restore()
        return table

    async def protect(self, tables: Iterable[TableVersion]) -> None:
        """Tag these versions, so that no cleaning takes them."""
        connection = await self.connection()
        for pinned in tables:
            with lance_errors(f"tag {pinned.name} version {pinned.version}"):
                table = await connection.open_table(pinned.name)
                if _tag(pinned) not in await table.tags.list():
                    await table.tags.create(_tag(pinned), pinned.version)

    async def sync_to_disk(self, since: float) -> None:
        """Have all files written since that time on the disk itself: the pointer must not outlive them in a power cut."""
        with lance_errors(f"write to {self.directory}"):
            await asyncio.to_thread(self._sync_to_disk, since)

    def _sync_to_disk(self, since: float) -> None:
        for path in self.directory.glob("*.lance/**/*"):
            if path.stat().st_mtime >= since - SLACK.total_seconds():
                sync(path)

    async def clean_up(self, named: frozenset[TableVersion]) -> None:
        """Delete tables that nothing names any more, and free the versions that nothing names."""
        names = {pinned.name for pinned in named}
        await asyncio.to_thread(self._delete_others, names)
        connection = await self.connection()
        for name in names:
            with lance_errors(f"clean up {name} in {self.directory}"):
                tags = (await connection.open_table(name)).tags
                for tag, value in (await tags.list()).items():
                    if TableVersion(name, value["version"]) not in named:
                        await tags.delete(tag)

    def _delete_others(self, names: set[str]) -> None:
        for folder in self.directory.glob("*.lance"):
            if _OURS.fullmatch(folder.name) and folder.stem not in names:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _tag(pinned: TableVersion) -> str:
    return f"v{pinned.version}"


async def merge(table: Any, oldest: int) -> None:
    """Join a table's small files and update its indices where that pays, then delete versions before the oldest needed.

    LanceDB refuses a cleaning that would take any tagged version, so those in between stay until then.
    """
    with lance_errors("merge the files of a table"):
        if not await _worth_merging(table, oldest):
            return
        await table.optimize(cleanup_older_than=NEVER)  # apart, as an age is counted from the end of the merging
        committed = {v["version"]: v["timestamp"] for v in await table.list_versions()}
        age = datetime.now(committed[oldest].tzinfo) - committed[oldest] + SLACK
        try:
            await table.optimize(cleanup_older_than=age, delete_unverified=True)
        except RuntimeError as error:
            if "tagged version" not in str(error):
                raise
            log.warning("Old versions of a table stay until the next run: %s", error)


async def index_chunks(table: Any, clusters: Clusters = ANY) -> None:
    """Make the indices that the table lacks."""
    with lance_errors("index the chunks"):
        present = {index.columns[0] for index in await table.list_indices()}
        await _index_words(table, present)
        if "vector" not in present and (count := clusters.of(await table.count_rows())):
            await _index_vectors(table, count)


async def _index_words(table: Any, present: set[str]) -> None:
    from lancedb.index import FTS

    # The text comes analysed: only its spaces mean something.
    words = FTS(
        with_position=False,
        base_tokenizer="whitespace",
        max_token_length=None,
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
    )
    if "tokens" not in present:
        await table.create_index("tokens", config=words)


async def _index_vectors(table: Any, clusters: int) -> None:
    from lancedb.index import IvfFlat

    await table.create_index("vector", config=IvfFlat(distance_type="dot", num_partitions=clusters))


async def _worth_merging(table: Any, oldest: int) -> bool:
    stats = await table.stats()
    if stats["fragment_stats"]["num_fragments"] > FRAGMENTS or await table.version() - oldest > VERSIONS:
        return True
    return any(i.num_unindexed_rows > UNINDEXED_SHARE * stats["num_rows"] for i in await table.list_indices())


def load_lancedb() -> Any:
    """The library, without its warnings on every query. Raises `SettingsError` when it isn't installed."""
    os.environ.setdefault("LANCE_LOG", "error")
    try:
        import lancedb
    except ImportError as error:
        raise SettingsError(
            "The embedded store needs lancedb, which isn't installed: "
            "install docs-assistant[embedded], or set DOCS_STORE to an opensearch:// address."
        ) from error
    return lancedb
