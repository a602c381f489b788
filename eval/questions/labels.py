"""Labels of relevance: which pairs of a question and a chunk are labelled, and the files in which models and people give their labels."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import StrictBool

from app.core.turn import Search
from app.index.protocols import Generation
from app.index.ranking.fuse import in_order, scored
from eval.files import EvaluationError, Required, json_lines, parse_row, read_text, write_json_lines, write_text
from eval.questions.cases import Case

DEPTH = 20  # chunks of each search method
SHEET = ("case", "chunk", "question", "url", "passage", "relevant")
SEED = 11
YES = frozenset({"1", "y", "yes", "true", "a", "ano", "x"})
NO = frozenset({"0", "n", "no", "false", "ne", "-"})


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a passage to be labelled; `case` and `chunk` are their ids."""

    case: str
    chunk: str
    question: str
    url: str
    passage: str


@dataclass(frozen=True, slots=True)
class Label:
    """What somebody says of a pair: whether the chunk helps to answer the question."""

    case: Required
    chunk: Required
    relevant: StrictBool
    by: Required


def pooled(search: Search, depth: int = DEPTH) -> tuple[str, ...]:
    """Ids of the chunks that searches by words, by vectors, by both and by ranks find: the first of each before the second of any."""
    legs, query = search.legs, search.query
    by_ranks = replace(query, fusion="rrf")
    rankings = [legs.lexical, legs.vector, in_order(scored(legs, query)), in_order(scored(legs, by_ranks))]
    return tuple(
        dict.fromkeys(ranking[rank].id for rank in range(depth) for ranking in rankings if rank < len(ranking))
    )


async def pairs_of(generation: Generation, case: Case, ids: Sequence[str]) -> list[Pair]:
    """The pairs of one question with these chunks."""
    chunks = await generation.fetch(ids)
    return [Pair(case.id, one.id, case.standalone or case.question, one.link, one.embedded_text) for one in chunks]


def drawn(pairs: Sequence[Pair], labels: Iterable[Label], number: int) -> list[Pair]:
    """A sample for people, up to half of it called relevant by these labels, in an order that doesn't show which half; without labels, any."""
    dice = random.Random(SEED)  # noqa: S311  # a sample, no secret
    verdict = {(label.case, label.chunk): label.relevant for label in labels}
    yes, no = ([pair for pair in pairs if verdict.get((pair.case, pair.chunk)) is wanted] for wanted in (True, False))
    if not yes + no:
        return dice.sample(pairs, min(len(pairs), number))
    chosen = dice.sample(yes, min(len(yes), number // 2))
    chosen += dice.sample(no, min(len(no), number - len(chosen)))
    dice.shuffle(chosen)
    return chosen


def write_labels(labels: Iterable[Label], path: str | Path) -> None:
    """Write labels as .jsonl. Raises `EvaluationError` if that fails."""
    write_json_lines(map(asdict, labels), path)


def write_sheet(pairs: Iterable[Pair], path: str | Path) -> None:
    """Write a table with an empty column `relevant`. Raises `EvaluationError` if that fails."""
    text = io.StringIO()
    table = csv.DictWriter(text, SHEET, lineterminator="\n")
    table.writeheader()
    table.writerows({**asdict(pair), "relevant": ""} for pair in pairs)
    write_text(f"\ufeff{text.getvalue()}", path)  # spreadsheets take it for UTF-8


def load_labels(path: str | Path) -> tuple[Label, ...]:
    """The labels of a .jsonl file, or of a filled-in sheet (.csv); empty cells are left out. Raises `EvaluationError`."""
    path = Path(path)
    rows = _sheet_rows(path) if path.suffix.lower() == ".csv" else json_lines(path)
    every = (parse_row(Label, where, row) for where, row in rows)
    labels = {(label.case, label.chunk): label for label in every}
    if not labels:
        raise EvaluationError(f"{path}: it has no label.")
    return tuple(labels.values())


def _sheet_rows(path: Path) -> Iterable[tuple[str, Mapping[str, Any]]]:
    text = read_text(path)
    head = text.partition("\n")[0]
    # with a decimal comma, as in Czech, spreadsheets separate cells by semicolons
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
    if not {"case", "chunk", "relevant"} <= set(reader.fieldnames or ()):
        raise EvaluationError(f"{path}: a sheet has the columns case, chunk and relevant.")
    for row in reader:
        if word := (row["relevant"] or "").strip().lower():
            where = f"{path}:{reader.line_num}"
            if word not in YES | NO:
                raise EvaluationError(f"{where}: 'relevant' is {word!r}; write yes or no.")
            yield where, {"case": row["case"], "chunk": row["chunk"], "relevant": word in YES, "by": path.stem}


def relevant_chunks(labels: Iterable[Label]) -> Mapping[str, frozenset[str]]:
    """Ids of the relevant chunks by case; a case without any is left out."""
    found: dict[str, set[str]] = {}
    for label in labels:
        if label.relevant:
            found.setdefault(label.case, set()).add(label.chunk)
    return {case: frozenset(chunks) for case, chunks in found.items()}
