"""Files of labels: one JSON object per line, and sheets that people fill in."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import StrictBool

from eval.errors import EvaluationError
from eval.files import Required, json_lines, parse_row, read_text, write_json_lines
from eval.label.pool import Pair

SHEET = ("case", "chunk", "question", "url", "passage", "relevant")
SEED = 11
YES = frozenset({"1", "y", "yes", "true", "a", "ano", "x"})
NO = frozenset({"0", "n", "no", "false", "ne", "-"})


@dataclass(frozen=True, slots=True)
class Label:
    """Whether a passage is relevant to a question, and whose label this is."""

    case: Required
    chunk: Required
    relevant: StrictBool
    by: Required

    @property
    def key(self) -> str:
        """The key of the labelled pair."""
        return f"{self.case}\0{self.chunk}"


def write_labels(labels: Iterable[Label], path: str | Path) -> None:
    """Write labels. Raises `EvaluationError` if the file can't be written."""
    write_json_lines(map(asdict, labels), path)


def load_labels(path: str | Path) -> tuple[Label, ...]:
    """Labels of a .jsonl file, or of a sheet (.csv) with a completed column `relevant`; empty cells are left out."""
    path = Path(path)
    if path.suffix.lower() == ".csv":
        return tuple(_from_sheet(path))
    return tuple(parse_row(Label, where, row) for where, row in json_lines(path))


def relevant_by_case(labels: Iterable[Label]) -> Mapping[str, frozenset[str]]:
    """Ids of the relevant chunks by case; a case without relevant passages has an empty set."""
    found: dict[str, set[str]] = {}
    for label in labels:
        of_case = found.setdefault(label.case, set())
        if label.relevant:
            of_case.add(label.chunk)
    return {case: frozenset(chunks) for case, chunks in found.items()}


def drawn(pairs: Sequence[Pair], labels: Iterable[Label], n: int) -> list[Pair]:
    """A sample for people: the model calls half of it relevant, but the order doesn't show which half."""
    verdict = {label.key: label.relevant for label in labels}
    dice = random.Random(SEED)  # noqa: S311  # a sample, no secret
    chosen: list[Pair] = []
    for wanted in (True, False):
        of_kind = [pair for pair in pairs if verdict.get(pair.key) is wanted]
        chosen += dice.sample(of_kind, min(len(of_kind), n // 2))
    dice.shuffle(chosen)
    return chosen


def write_sheet(pairs: Iterable[Pair], path: str | Path) -> None:
    """Write a sheet with an empty column `relevant`. Raises `EvaluationError` if that fails."""
    try:
        with Path(path).open("w", encoding="utf-8-sig", newline="") as file:  # spreadsheets need the byte order mark
            table = csv.DictWriter(file, SHEET)
            table.writeheader()
            table.writerows({**asdict(pair), "relevant": ""} for pair in pairs)
    except OSError as error:
        raise EvaluationError(f"The sheet can't be written: {error}") from error


def _from_sheet(path: Path) -> Iterable[Label]:
    text = read_text(path)
    head = text.partition("\n")[0]
    # with a decimal comma, as in Czech, spreadsheets separate cells by semicolons
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
    if not {"case", "chunk", "relevant"} <= set(reader.fieldnames or ()):
        raise EvaluationError(f"{path}: a sheet has the columns case, chunk and relevant.")
    for row in reader:
        word = (row["relevant"] or "").strip().lower()
        if not word:
            continue
        if word not in YES | NO:
            raise EvaluationError(f"{path}:{reader.line_num}: 'relevant' is {word!r}; write yes or no.")
        yield Label(row["case"], row["chunk"], word in YES, path.stem)
