"""Vectors that an unfinished run has computed, in a file of the index's directory: an interrupted run goes on from there."""

import hashlib
import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from app.core.errors import StoreError
from app.core.types import Vector

FILE = "next-vectors.sqlite3"
_WAIT = 30.0  # seconds for another process that writes


class VectorCache:
    """Vectors of passages by the embedder's recorded name and the text. Methods raise `StoreError` and may run in any thread.

    `options` are other settings that change the vectors.
    """

    def __init__(self, directory: Path, embedder: str, *options: object) -> None:
        self._path = directory / FILE
        self._embedder = embedder
        self._options = f" {options}" if options else ""

    def find(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors that are there, by text."""
        if not self._path.exists():
            return {}
        keys = {self._key(text): text for text in texts}
        marks = ",".join("?" * len(keys))
        rows = self._run(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", [tuple(keys)])  # noqa: S608  # only marks
        return {keys[key]: list(array("f", vector)) for key, vector in rows}

    def add(self, vectors: Mapping[str, Vector]) -> None:
        """Store these vectors by text."""
        import numpy as np  # where it is used: a run without changes doesn't need it

        rows = [(self._key(text), self._embedder, np.asarray(v, np.float32).tobytes()) for text, v in vectors.items()]
        self._run("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def clear(self) -> None:
        """Delete the file, after a run was published or if it is damaged."""
        for path in (self._path, self._path.with_name(f"{FILE}-journal")):
            path.unlink(missing_ok=True)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._embedder}{self._options}\0{text}".encode("utf-8", "replace")).digest()

    def _run(self, statement: str, parameters: Iterable[Sequence[Any]]) -> list[Any]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_WAIT)) as database, database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, embedder TEXT, vector BLOB)"
                )
                if statement.startswith("SELECT"):
                    return [row for values in parameters for row in database.execute(statement, values)]
                database.executemany(statement, parameters)
                return []
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._path}: {error}. Delete this file: it only spares work.") from error
