"""Access to LanceDB: tables, their versions and indices, words and clusters of vectors, and its errors as `StoreError`s."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import shutil
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from app.core.errors import AssistantError, IndexDamaged, SettingsError, StoreError
from app.core.process import bound_memory, give_back_memory
from app.index.embedded.pointer import TableVersion, sync
from app.index.vocabulary import Vocabulary

log = logging.getLogger(__name__)

# Below this number of rows, comparing every vector is faster than an index.
ROWS_FOR_CLUSTERS = 20_000
FEWEST_IN_CLUSTER = 10
# Small clusters: with the square root alone, searching a fifth of them found only .90 of the nearest 30.
TIMES_ROOT = 8


@dataclass(frozen=True, slots=True)
class Clusters:
    """The number of clusters (0: by the number of chunks), and the percentage of them that is searched."""

    wanted: int = 0
    searched: int = 20

    def of(self, rows: int) -> int:
        """The number of clusters for this number of chunks; 0 if all chunks are compared."""
        if not self.wanted:
            return round(TIMES_ROOT * rows**0.5) if rows >= ROWS_FOR_CLUSTERS else 0
        most = min(self.wanted, rows // FEWEST_IN_CLUSTER)
        return most if most > 1 else 0

    def probes(self, rows: int) -> int:
        """The number of clusters to search, at least one."""
        return max(1, self.of(rows) * self.searched // 100)


REMOTE = "lance_namespace_urllib3_client"
"""A generated HTTP client of remote catalogs, with 366 functions that pydantic prepares. lancedb imports it for names of types:
two thirds of the seconds that its import takes, and 18 MB, in every process that opens an index in a directory."""


def load_lancedb() -> Any:
    """Import lancedb, without its warnings on every query. Raises `SettingsError` if it isn't installed."""
    os.environ.setdefault("LANCE_LOG", "error")
    bound_memory()
    try:
        with _without_remote_catalogs():
            import lancedb
    except ImportError as error:
        raise SettingsError(
            "The embedded store needs lancedb, which isn't installed: "
            "install docs-assistant[embedded], or set DOCS_STORE to an opensearch:// address."
        ) from error
    return lancedb


class _Unused(ModuleType):
    """A module whose names are empty classes."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _UnusedFinder(MetaPathFinder, Loader):
    """Finds the modules of `REMOTE` without reading them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == REMOTE else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Unused(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


@contextmanager
def _without_remote_catalogs() -> Iterator[None]:
    """Gives empty classes from `REMOTE` to what is imported in this context; what is imported later gets the real ones."""
    if "lancedb" in sys.modules or REMOTE in sys.modules:
        yield
        return
    finder = _UnusedFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in {REMOTE, "lance_namespace"}]:
            del sys.modules[name]


# Each write adds a file (fragment) and a version, and rows outside the full-text index are scanned
# one by one. Merging copies rows, so it waits until one of these limits is exceeded.
FRAGMENTS = 12
VERSIONS = 40
UNINDEXED_SHARE = 0.1
CLUSTERED = "vector_"  # and the number of clusters: the name of their index
GROWN = 2  # times as many clusters should there be: four times the rows
NEVER = timedelta(days=36500)
SLACK = timedelta(seconds=1)  # LanceDB takes the current time later


ANY = Clusters()
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)

_OURS = re.compile(r"(chunks|texts|pages|summaries|words)_[0-9a-f]{12}\.lance")


@contextmanager
def lance_errors(what: str, kind: type[StoreError] = StoreError) -> Iterator[None]:
    """Context that converts exceptions of LanceDB to `kind`; `what` completes "can't"."""
    try:
        yield
    except AssistantError:
        raise
    except Exception as error:  # on damaged files it panics, with an exception of no public type
        full = any(f"os error {number}" in str(error) for number in FULL)
        advice = ". Make room on its disk and start again; what was published stays as it was." if full else ""
        raise kind(f"The embedded store can't {what}: {error}{advice}") from error


class Tables:
    """The tables of one directory. Names are never reused, so a leftover is never mistaken for a table."""

    def __init__(self, directory: Path, clusters: Clusters = ANY) -> None:
        self.directory = directory
        self.clusters = clusters
        self._connection: Any = None

    async def connection(self) -> Any:
        """The connection to LanceDB, opened by the first call."""
        if self._connection is None:
            lancedb = load_lancedb()
            with lance_errors(f"open {self.directory}"):
                self._connection = await lancedb.connect_async(str(self.directory))
        return self._connection

    async def open_version(self, pinned: TableVersion) -> Any:
        """A table at a fixed version; later writes don't change it."""
        connection = await self.connection()
        with lance_errors(f"read {pinned.name} version {pinned.version} in {self.directory}", IndexDamaged):
            table = await connection.open_table(pinned.name)
            await table.checkout(pinned.version)
        return table

    async def create(self, kind: str, content: Any) -> tuple[str, Any]:
        """Create a table of this kind from Arrow data or a schema; returns its name and the table."""
        import pyarrow as pa

        connection = await self.connection()
        name = f"{kind}_{uuid.uuid4().hex[:12]}"
        values = {"schema": content} if isinstance(content, pa.Schema) else {"data": content}
        with lance_errors(f"create a table in {self.directory}"):
            return name, await connection.create_table(name, **values)

    async def open_for_writing(self, pinned: TableVersion) -> Any:
        """The table, opened for writing and reset to this version, without later writes of a failed run."""
        connection = await self.connection()
        with lance_errors(f"write to {pinned.name} in {self.directory}"):
            table = await connection.open_table(pinned.name)
            if await table.version() != pinned.version:
                await table.checkout(pinned.version)
                await table.restore()
        return table

    async def protect(self, tables: Iterable[TableVersion]) -> None:
        """Tag these versions, so that no cleanup deletes them."""
        connection = await self.connection()
        for pinned in tables:
            with lance_errors(f"tag {pinned.name} version {pinned.version}"):
                table = await connection.open_table(pinned.name)
                if _tag(pinned) not in await table.tags.list():
                    await table.tags.create(_tag(pinned), pinned.version)

    async def sync_to_disk(self, since: float) -> None:
        """Flush all files written since this time to disk, so that the pointer doesn't outlive them in a power cut."""
        with lance_errors(f"write to {self.directory}"):
            await asyncio.to_thread(self._sync_to_disk, since)

    def _sync_to_disk(self, since: float) -> None:
        for path in self.directory.glob("*.lance/**/*"):
            if path.stat().st_mtime >= since - SLACK.total_seconds():
                sync(path)

    async def clean_up(self, named: frozenset[TableVersion]) -> None:
        """Delete tables and untag versions that aren't in `named`."""
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
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _tag(pinned: TableVersion) -> str:
    return f"v{pinned.version}"


async def merge(table: Any, oldest: int) -> None:
    """Merge small files and update indices if it pays off, then delete versions before `oldest`.

    LanceDB refuses a cleanup that includes any tagged version; then older versions stay for now.
    """
    with lance_errors("merge the files of a table"):
        if not await _worth_merging(table, oldest):
            return
        await table.optimize(cleanup_older_than=NEVER)  # a separate call, because ages count from the end of the merge
        committed = {v["version"]: v["timestamp"] for v in await table.list_versions()}
        age = datetime.now(committed[oldest].tzinfo) - committed[oldest] + SLACK
        try:
            await table.optimize(cleanup_older_than=age, delete_unverified=True)
        except RuntimeError as error:
            if "tagged version" not in str(error):
                raise
            log.warning("Old versions of a table stay until the next run: %s", error)


async def outgrown(table: Any, clusters: Clusters = ANY) -> int:
    """The number of clusters that the table should have now; 0 if those that it has are enough."""
    with lance_errors("read its indices"):
        if not (wanted := clusters.of(await table.count_rows())):
            return 0
        counts = [_count(index.name) for index in await table.list_indices() if index.columns == ["vector"]]
    return wanted if wanted >= GROWN * max(counts, default=0) else 0


def _count(name: str) -> int:
    """The number of clusters in the name of their index; 1 for an index without one, of an earlier release."""
    number = name.removeprefix(CLUSTERED)
    return int(number) if number.isdecimal() else 1


async def index_chunks(table: Any, clusters: Clusters = ANY) -> None:
    """Create the missing indices of the table, and the clusters again if it has outgrown them."""
    from lancedb.index import FTS

    # The text is already analysed; only spaces separate tokens.
    words = FTS(
        with_position=False,
        base_tokenizer="whitespace",
        max_token_length=None,
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
    )
    with lance_errors("index the chunks"):
        present = await table.list_indices()
        if not any(index.columns == ["tokens"] for index in present):
            await table.create_index("tokens", config=words)
        if count := await outgrown(table, clusters):
            for index in present:
                if index.columns == ["vector"]:
                    await table.drop_index(index.name)
            await cluster(table, count)


async def cluster(table: Any, count: int) -> None:
    """Put the vectors of the table into so many clusters."""
    from lancedb.index import IvfFlat

    parts = IvfFlat(distance_type="dot", num_partitions=count)
    await table.create_index("vector", config=parts, name=f"{CLUSTERED}{count}")


async def _worth_merging(table: Any, oldest: int) -> bool:
    stats = await table.stats()
    if stats["fragment_stats"]["num_fragments"] > FRAGMENTS or await table.version() - oldest > VERSIONS:
        return True
    return any(i.num_unindexed_rows > UNINDEXED_SHARE * stats["num_rows"] for i in await table.list_indices())


COUNTED_AT_ONCE = 1000  # chunks whose words are in memory


async def write_words(tables: Tables, chunks: TableVersion) -> TableVersion:
    """Count the words of these chunks and write them to a new table: 10 s for 100,000 chunks."""
    import pyarrow as pa

    words = await count_words(await tables.open_version(chunks))
    row = {"tokens": words.tokens, "counts": words.counts}
    schema = pa.schema([pa.field(name, pa.large_binary(), nullable=False) for name in row])
    name, table = await tables.create("words", pa.Table.from_pylist([row], schema=schema))
    with lance_errors("write the words of the index"):
        return TableVersion(name, await table.version())


async def read_words(table: Any) -> Vocabulary:
    """The words in this table."""
    with lance_errors("read the words of the index", IndexDamaged):
        (row,) = (await table.query().to_arrow()).to_pylist()
        words = Vocabulary(row["tokens"], row["counts"])
        if not words.is_whole():
            raise IndexDamaged("The words of the index aren't those that were written.")
        return words


async def count_words(chunks: Any) -> Vocabulary:
    """The words of the chunks in this table: 10 s for 100,000."""
    counts: Counter[str] = Counter()
    with lance_errors("count the words of the index"):
        async for batch in await chunks.query().select(["tokens"]).to_batches(max_batch_length=COUNTED_AT_ONCE):
            counts.update(await asyncio.to_thread(_word_counts, batch.column("tokens").to_pylist()))
    words = await asyncio.to_thread(Vocabulary.of, counts)
    counts.clear()
    await asyncio.to_thread(give_back_memory)
    return words


def _word_counts(texts: Sequence[str]) -> Counter[str]:
    return Counter(token for text in texts for token in set(text.split()))
