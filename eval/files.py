"""Reads and writes files, with errors that name the file and the line; documents have one row per line, for diffs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from app.core.errors import AssistantError


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
