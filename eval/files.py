"""Reads and writes files, with errors that name the file and the line; documents have one row per line, for diffs. Calls to models
are made a few at a time, and kept in a file, so that none is paid twice.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, TextIO, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from app.core.errors import AssistantError

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
    """Rows by key in a JSONL file, used with `with`. Drops an incomplete last line. An empty path saves nothing."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path) if path else None
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path:
            try:
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


class EvaluationError(AssistantError):
    """Wrong input: the message names the file, the place and what to do."""


R = TypeVar("R")


def read_text(path: str | Path) -> str:
    """The file's text without a byte order mark. Raises `EvaluationError` if it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it isn't written in UTF-8 ({error})"
        raise EvaluationError(f"{path} can't be read: {reason}.") from error


def write_text(text: str, path: str | Path) -> None:
    """Write a file. Raises `EvaluationError` if that fails."""
    try:
        Path(path).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"{path} can't be written: {error}") from error


def json_lines(path: str | Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each object of a .jsonl file with its place as "file:line"; empty lines are skipped."""
    # not splitlines(): JSON strings may contain U+2028
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise EvaluationError(f"{where}: this line isn't JSON ({error}).") from error
        if not isinstance(value, dict):
            raise EvaluationError(f"{where}: this is a {type(value).__name__}, not a JSON object.")
        yield where, value


def write_json_lines(rows: Iterable[Mapping[str, Any]], path: str | Path) -> None:
    """Write one JSON object per line. Raises `EvaluationError` if the file can't be written."""
    write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), path)


Text = Annotated[str, StringConstraints(strip_whitespace=True)]
Required = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Row(BaseModel):
    """A row of a file; numbers are accepted as texts, unknown fields are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


def parse_row(kind: type[R], where: str, row: Mapping[str, Any]) -> R:
    """The row as a model or dataclass; null means no value. Raises `EvaluationError` naming place and field."""
    try:
        return TypeAdapter(kind).validate_python({name: value for name, value in row.items() if value is not None})
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        if problem["type"] in {"missing", "string_too_short"}:
            raise EvaluationError(f"{where}: {name!r} is missing or empty.") from error
        raise EvaluationError(f"{where}: {name!r} is {problem['input']!r}: {problem['msg']}.") from error


def save_document(path: str | Path, head: Mapping[str, Any], name: str, rows: Any) -> None:
    """Write a JSON document: the head, then under `name` the rows, a list or a mapping, one per line.

    Raises `EvaluationError` if the file can't be written.
    """
    start = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    lines = [json.dumps(row, ensure_ascii=False) for row in (rows.values() if isinstance(rows, Mapping) else rows)]
    opening, closing = "[", "]"
    if isinstance(rows, Mapping):
        opening, closing = "{", "}"
        keys = (json.dumps(key, ensure_ascii=False) for key in rows)
        lines = [f"  {key}: {line}" for key, line in zip(keys, lines, strict=True)]
    write_text(f'{start},\n "{name}": {opening}\n' + ",\n".join(lines) + f"\n {closing}\n}}", path)


def load_document(path: str | Path, form: str, made_by: str) -> dict[str, Any]:
    """A document of this form. Raises `EvaluationError` for another file; `made_by` names the command that writes it."""
    try:
        document = json.loads(read_text(path))
        document_form = document["form"]
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path} isn't a file of `{made_by}` ({type(error).__name__}: {error}).") from error
    if document_form != form:
        raise EvaluationError(
            f"{path} has the form {document_form!r} instead of {form!r}: make it again with `{made_by}`."
        )
    return dict(document)
