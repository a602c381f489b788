"""Labels the relevance of passages to questions, by a model, and compares the labels with those of people."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path

from pydantic import StrictBool

from app.core.types import Legs, Query
from app.index.protocols import Generation
from app.index.ranking.fuse import fuse
from eval.files import EvaluationError, Required, json_lines, parse_row, read_text, write_json_lines
from eval.judge import own_criterion
from eval.questions.cases import Case

DEPTH = 20
RELEVANT = own_criterion(
    "relevant",
    "RELEVANT",
    "IRRELEVANT",
    """Does the PASSAGE help to answer the QUESTION?
RELEVANT: it has the answer, or a part of it that a correct answer needs.
IRRELEVANT: it is only about the same topic, or about something else.""",
    ("question", "passage"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a passage, to be labelled."""

    case: str
    chunk: str
    question: str
    url: str
    passage: str

    @property
    def key(self) -> str:
        """The key of the pair in label files."""
        return f"{self.case}\0{self.chunk}"


def search_methods(query: Query) -> Mapping[str, Query]:
    """The search methods of the pool: as configured, by ranks, keywords only, vectors only."""
    deep = replace(query, limit=DEPTH, per_page=DEPTH)
    return {
        "as set": deep,
        "rrf": replace(deep, fusion="rrf"),
        "words": replace(deep, fusion="weighted", lexical_weight=1.0, vector_weight=0.0),
        "vectors": replace(deep, fusion="weighted", lexical_weight=0.0, vector_weight=1.0),
    }


def pooled(legs: Legs, query: Query) -> tuple[str, ...]:
    """Ids of the pooled chunks: the first of each method before the second of any."""
    rankings = [[ranked.id for ranked in fuse(legs, method)] for method in search_methods(query).values()]
    ids: dict[str, None] = {}
    for rank in range(DEPTH):
        ids.update(dict.fromkeys(ranking[rank] for ranking in rankings if rank < len(ranking)))
    return tuple(ids)


async def pairs(generation: Generation, case: Case, ids: Sequence[str]) -> list[Pair]:
    """The pairs of one question, with the passages as a model would get them."""
    return [
        Pair(case.id, chunk.id, case.question, chunk.link, f"{chunk.context}\n\n{chunk.text}")
        for chunk in await generation.fetch(ids)
    ]


SHEET = ("case", "chunk", "question", "url", "passage", "relevant")
SEED = 11
YES = frozenset({"1", "y", "yes", "true", "a", "ano", "x"})
NO = frozenset({"0", "n", "no", "false", "ne", "-"})


@dataclass(frozen=True, slots=True)
class Label:
    """Label of a passage: its relevance to a question, and who gave it."""

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
    relevant: dict[str, set[str]] = {}
    for label in labels:
        of_case = relevant.setdefault(label.case, set())
        if label.relevant:
            of_case.add(label.chunk)
    return {case: frozenset(chunks) for case, chunks in relevant.items()}


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


CONSENSUS = 0.5


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement on pairs. A pair is relevant if more than half of the people say so; an even `split` is left out
    and counted.

    `f1`, `precision` and `recall` compare the model with the consensus, `kappa` is Cohen's of the two, `among_people`
    the mean of Cohen's kappa over pairs of people (None for one person).
    """

    n: int
    split: int
    people: int
    precision: float
    recall: float
    f1: float
    kappa: float
    among_people: float | None


def agreement(model: Sequence[Label], people: Sequence[Sequence[Label]]) -> Agreement:
    """The model's labels compared with those of people, on pairs that both labelled. Raises `EvaluationError` without
    any.
    """
    said = {label.key: label.relevant for label in model}
    votes: dict[str, list[bool]] = {}
    for person in people:
        for key, relevant in {label.key: label.relevant for label in person}.items():
            votes.setdefault(key, []).append(relevant)
    shared = {key: sum(own) / len(own) for key, own in votes.items() if key in said}
    decided = {key: share > CONSENSUS for key, share in shared.items() if share != CONSENSUS}
    if not decided:
        raise EvaluationError(
            "The model and the people labelled no pair in common. Are the files of the same labelling?"
        )
    both = [(said[key], relevant) for key, relevant in decided.items()]
    right = sum(a and b for a, b in both)
    precision = right / max(sum(a for a, _ in both), 1)
    recall = right / max(sum(b for _, b in both), 1)
    return Agreement(
        n=len(decided),
        split=len(shared) - len(decided),
        people=len(people),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if right else 0.0,
        kappa=kappa(both),
        among_people=_among(people),
    )


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Cohen's kappa: agreement beyond chance. It is 1 if both always give the same label."""
    n = len(pairs)
    same = sum(a == b for a, b in pairs) / n
    yes_a, yes_b = sum(a for a, _ in pairs) / n, sum(b for _, b in pairs) / n
    chance = yes_a * yes_b + (1 - yes_a) * (1 - yes_b)
    return 1.0 if chance == 1 else (same - chance) / (1 - chance)


def _among(people: Sequence[Sequence[Label]]) -> float | None:
    tables: list[Mapping[str, bool]] = [{label.key: label.relevant for label in person} for person in people]
    kappas = []
    for first, other in combinations(tables, 2):
        if both := [(first[key], other[key]) for key in first.keys() & other.keys()]:
            kappas.append(kappa(both))
    return sum(kappas) / len(kappas) if kappas else None
