"""Calls to models in an evaluation: a few at a time, and kept in a file so that none is paid twice."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TextIO, TypeVar

from eval.files import EvaluationError

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
KEY = '{"key"'


async def in_parallel(
    items: Sequence[Item],
    ask: Callable[[int, Item], Awaitable[Result]],
    parallel: int,
    progress: Progress | None = None,
) -> tuple[Result, ...]:
    """The results of `ask` for each item and its position, in the order of the items, with `parallel` calls at once.
    `progress` is called with the number of finished items and of all.
    """
    results: dict[int, Result] = {}
    queue: Iterator[tuple[int, Item]] = iter(enumerate(items))

    async def work() -> None:
        for position, item in queue:  # all workers share it: each takes the next item
            results[position] = await ask(position, item)
            if progress:
                progress(len(results), len(items))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(items))):
            group.create_task(work())
    return tuple(results[position] for position in range(len(items)))


def fingerprint(*parts: str) -> str:
    """A short name for these texts together."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


class Cache:
    """Rows by key in a JSONL file, used with `with`. Drops an incomplete last line. An empty path saves nothing.

    Rows of the file `earlier`, which may not exist, are known too; it is never written to.
    """

    def __init__(self, path: str | Path, earlier: Path | None = None) -> None:
        self._path = Path(path) if path else None
        self._earlier = earlier
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path:
            try:
                if self._earlier:
                    self._read(self._earlier)
                whole = self._read(self._path)
                self._file = self._path.open("a", encoding="utf-8")
                if not whole:
                    self._file.write("\n")
            except OSError as error:
                raise EvaluationError(f"{self._path} can't be written: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The row saved under the key."""
        return self._rows.get(key)

    def put(self, key: str, row: Mapping[str, Any]) -> None:
        """Save a row; it is written when the call returns."""
        self._rows[key] = row
        if self._file:
            self._file.write(json.dumps({"key": key, **row}, ensure_ascii=False) + "\n")
            self._file.flush()

    def _read(self, path: Path) -> bool:
        """False if the file ends in the middle of a line."""
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                self._rows[row.pop("key")] = row
            except (json.JSONDecodeError, KeyError, AttributeError) as error:
                # the beginning of a line of ours: the process was killed while writing it, so its question is asked again
                if not (line.startswith(KEY) or KEY.startswith(line)):
                    raise EvaluationError(f"{path}:{number}: this is no line of ours ({error}).") from error
        return not text or text.endswith("\n")
