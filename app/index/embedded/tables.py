"""Access to LanceDB: tables, their rows, versions and indices, words, and its errors as `StoreError`s.

Fields for search and filters are columns of a row, the rest is one JSON record.
"""

import asyncio
import errno
import hashlib
import logging
import math
import os
import re
import shutil
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson

from app.core.errors import AssistantError, IndexDamaged, IndexMismatch, SettingsError, StoreError
from app.core.process import bound_memory, give_back_memory
from app.core.types import Chunk, Filters, Page, Vector, sections_of
from app.index.embedded.pointer import TableVersion, sync
from app.index.vocabulary import Vocabulary, chunks_with, tokens_of

UNITS = "units"
"""The column with the units of a chunk; tables of earlier releases lack it."""

TRANSLATION_SET = "translation_set"
"""The column with the translation set of a page."""

QUESTIONS = "questions_vector"
"""The column with the vector of a chunk's questions, in an index that has questions; zero for a chunk without any."""


def digest(chunk: Chunk) -> bytes:
    """A digest of everything but where the chunk stands in its page, which alone is no reason to write it."""
    return _digest(orjson.dumps(chunk.kept(0)))


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def unit(vector: Vector, dimension: int, of: str) -> list[float]:
    """The vector scaled to length 1, so that the dot product of two is their cosine; a zero vector stays zero."""
    values = np.asarray(vector, dtype=np.float32)
    if values.shape != (dimension,):
        raise IndexMismatch(
            f"The vector of {of} has {values.size} numbers and the index {dimension}: "
            "it was built with another embedder; use that one, or ingest again."
        )
    length = float(np.linalg.norm(values.astype(np.float64)))
    if not math.isfinite(length):
        raise StoreError(f"The vector of {of} has numbers that aren't finite: check the embedder.")
    unit_values: list[float] = (values / length if length else values).tolist()
    return unit_values


def schemas(dimension: int, *, questions: bool = False) -> dict[str, Any]:
    """The columns of each kind of table; chunks have vectors of their questions or not."""
    import pyarrow as pa

    text, data, texts = pa.string(), pa.binary(), pa.list_(pa.string())
    vector = pa.list_(pa.float32(), dimension)
    chunks = dict.fromkeys(("id", "url", "collection", "language", "modified", "tokens"), text)
    chunks |= {"versions": texts, "record": data, "digest": data, "vector": vector, UNITS: data}
    kinds = {
        "chunks": chunks | ({QUESTIONS: vector} if questions else {}),
        "texts": {"url": text, "markdown": text, "plain": data},
        "pages": {"url": text, "language": text, TRANSLATION_SET: text, "record": data},
        "summaries": dict.fromkeys(("url", "collection", "language"), text)
        | {"versions": texts, "digest": data, "vector": vector},
    }
    return {
        kind: pa.schema([pa.field(name, type_, nullable=False) for name, type_ in columns.items()])
        for kind, columns in kinds.items()
    }


def chunk_row(chunk: Chunk, vector: Sequence[float], questions: Sequence[float], units: bytes) -> dict[str, Any]:
    """The row of a chunk, with vectors of length 1 and its packed units. Analysis takes about 1 ms, so call it in a thread."""
    return {
        **{name: getattr(chunk, name) for name in ("id", "url", "collection", "language", "versions")},
        "modified": chunk.dated,
        "tokens": " ".join(tokens_of(chunk)),
        "record": orjson.dumps(chunk.kept(chunk.position)),
        "digest": digest(chunk),
        "vector": vector,
        QUESTIONS: questions,
        UNITS: units,
    }


def to_chunk(record: bytes) -> Chunk:
    """A chunk from its record."""
    values = orjson.loads(record)
    sections = sections_of(values.pop("sections"))
    questions = tuple((code, text) for code, text in values.pop("questions", ()))
    return Chunk(**(values | {"versions": tuple(values["versions"])}), sections=sections, questions=questions)


def summary_row(page: Page, vector: Sequence[float]) -> dict[str, Any]:
    """The row of a page with the vector of its summary, of length 1, and the digest of the fields that it is found by."""
    found_by = (page.summary_text, page.collection, page.language, page.versions)
    row = {name: getattr(page, name) for name in ("url", "collection", "language", "versions")}
    return row | {"digest": _digest(orjson.dumps(found_by)), "vector": vector}


def text_row(page: Page) -> dict[str, Any]:
    """The row of a page's Markdown and plain text."""
    return {"url": page.url, "markdown": page.markdown, "plain": orjson.dumps(page.derived.plain)}


def page_row(page: Page) -> dict[str, Any]:
    """The row of a page's record."""
    return {
        "url": page.url,
        "language": page.language,
        TRANSLATION_SET: page.shared_set,
        "record": orjson.dumps(page.facts),
    }


def to_page(record: bytes) -> Page:
    """A page from its record, without Markdown."""
    return Page.of_facts(orjson.loads(record))


def condition(filters: Filters) -> str:
    """The filters in SQL; empty if they don't restrict."""
    parts = [
        f"{column} IN ({quoted(values)})"
        for column, values in (("collection", filters.collections), ("language", filters.languages))
        if values
    ]
    if filters.url_prefixes:
        parts.append("(" + " OR ".join(f"starts_with(url, {quoted([p])})" for p in filters.url_prefixes) + ")")
    if filters.section_pattern:
        parts.append(f"regexp_like(url, {quoted([filters.section_pattern])})")
    if filters.version_pattern:
        said = f"array_has_any(versions, make_array({quoted(filters.said_versions)}))"
        parts.append(f"(regexp_like(url, {quoted([filters.version_pattern])}) OR {said})")
    return " AND ".join(parts)


def quoted(values: Sequence[str]) -> str:
    """The texts as SQL literals, separated by commas."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


log = logging.getLogger(__name__)

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
    if {"lancedb", REMOTE} & sys.modules.keys():
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
NEVER = timedelta(days=36500)
SLACK = timedelta(seconds=1)  # LanceDB takes the current time later


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

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._connection: Any = None
        self._link: TemporaryDirectory[str] | None = None

    async def connection(self) -> Any:
        """The connection to LanceDB, opened by the first call."""
        if self._connection is None:
            lancedb = load_lancedb()
            with lance_errors(f"open {self.directory}"):
                self._connection = await lancedb.connect_async(self._plain_path())
        return self._connection

    def _plain_path(self) -> str:
        """A path of the directory that LanceDB reads as it is: it would write into a directory whose name is percent-encoded."""
        path = str(self.directory.absolute())
        if quote(path, safe="/ ") == path and "~" not in path:
            return path
        self._link = TemporaryDirectory(prefix="docs-assistant-")
        link = Path(self._link.name, "index")
        self.directory.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path, target_is_directory=True)
        return str(link)

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

    async def write(self, kind: str, rows: Sequence[dict[str, Any]], schema: Any) -> TableVersion:
        """Write these rows to a new table of this kind."""
        import pyarrow as pa

        name, table = await self.create(kind, pa.Table.from_pylist(rows, schema=schema))
        with lance_errors(f"read the version of {name}"):
            return TableVersion(name, await table.version())

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
        if self._link is not None:
            self._link.cleanup()
            self._link = None


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


async def index_chunks(table: Any) -> None:
    """Index the words of the table, if they aren't yet."""
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
        if not await table.list_indices():
            await table.create_index("tokens", config=words)


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
    return await tables.write("words", [row], schema)


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
            counts.update(await asyncio.to_thread(chunks_with, batch.column("tokens").to_pylist()))
    words = await asyncio.to_thread(Vocabulary.of, counts)
    counts.clear()
    await asyncio.to_thread(give_back_memory)
    return words
