"""One table of an embedded draft: collects changes in memory and writes them in batches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Any

from app.index.embedded.pointer import TableVersion
from app.index.embedded.rows import quoted
from app.index.embedded.tables import Tables, lance_errors, merge

KEYS_AT_ONCE = 1000
KEYS = {"chunks": "id", "texts": "url", "summaries": "url"}


class DraftTable:
    """A table that starts from a published version, or empty.

    `rows` are the digests of the rows on disk, by key; `pending` are the rows to write.
    """

    def __init__(
        self, tables: Tables, kind: str, schema: Any, pinned: TableVersion | None, named: Iterable[TableVersion]
    ) -> None:
        self._tables = tables
        self._kind, self._key = kind, KEYS[kind]
        self._schema = schema
        self._pinned = pinned
        # the oldest version of this table that a generation uses; 1 for a new table
        self._oldest = min((n.version for n in named if pinned and n.name == pinned.name), default=1)
        self._name = ""
        self._table: Any = None
        self.rows: dict[str, bytes] = {}
        self.pending: dict[str, Any] = {}
        self._digests: dict[str, bytes] = {}
        self._gone: set[str] = set()

    @property
    def waiting(self) -> int:
        """The number of rows that the next flush writes or deletes."""
        return len(self.pending) + len(self._gone)

    def set(self, key: str, digest: bytes, content: Any) -> None:
        """Insert or replace the row; an unchanged row isn't written again."""
        self._gone.discard(key)
        self.pending.pop(key, None)
        if self.rows.get(key) != digest:
            self.pending[key] = content
            self._digests[key] = digest

    def drop(self, key: str) -> None:
        """Delete the row, if it exists."""
        self.pending.pop(key, None)
        if key in self.rows:
            self._gone.add(key)

    async def flush(self, data: Any) -> None:
        """Delete removed and replaced rows, and write `data`, the Arrow form of `pending`."""
        stale = [key for key in (*self._gone, *self.pending) if key in self.rows]
        if not stale and not self.pending:
            return
        table = await self._opened()
        with lance_errors(f"write {len(self.pending)} rows to {self._tables.directory}"):
            for keys in _batches(stale):
                await table.delete(f"{self._key} IN ({quoted(keys)})")
            if self.pending:
                await table.add(data)
        for key in stale:
            del self.rows[key]
        self.rows |= {key: self._digests.pop(key) for key in self.pending}
        self.pending.clear()
        self._gone.clear()

    async def finish(self, index: Callable[[Any], Awaitable[None]] | None = None) -> TableVersion:
        """The version to publish; the original version if neither rows nor an index were written."""
        written = self._table is not None
        if not written and self._pinned is not None and index is None:
            return self._pinned
        table = await self._opened()
        if written:
            await merge(table, self._oldest)
        if index is not None:
            await index(table)
        with lance_errors(f"read the version of {self._name}"):
            return TableVersion(self._name, await table.version())

    async def _opened(self) -> Any:
        if self._table is None and self._pinned is not None:
            self._name, self._table = self._pinned.name, await self._tables.open_for_writing(self._pinned)
        elif self._table is None:
            self._name, self._table = await self._tables.create(self._kind, self._schema)
        return self._table


def _batches(keys: list[str]) -> list[list[str]]:
    rest = iter(keys)
    return list(iter(lambda: list(islice(rest, KEYS_AT_ONCE)), []))
