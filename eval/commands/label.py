"""`eval label FILE`: labels found passages as relevant or not, by a model or by a person in the terminal; `eval
agreement`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from app.core.settings import Settings
from eval.commands.answers import judging
from eval.commands.options import (
    FAILED,
    JUDGE,
    OK,
    Options,
    argument,
    command,
    flag,
    number,
    option,
    output_folder,
    print_result,
    progress_bar,
    quiet_pipeline,
)
from eval.files import EvaluationError
from eval.grid.cross_validation import search
from eval.judge import Judgement, Task
from eval.label import (
    RELEVANT,
    Agreement,
    Label,
    Pair,
    drawn,
    load_labels,
    pairs,
    pooled,
    write_labels,
    write_sheet,
)
from eval.label import agreement as agreement_of
from eval.questions.cases import load_cases, sample

LONGEST_PASSAGE = 1500


@command(
    f"file --limit --parallel {JUDGE}",
    option("--out", "directory for labels, judgements and sheets", "DIR", required=True),
    number("--samples", 40, "pairs for a person (default 40)"),
    flag("--sheet", "write sheet.csv: give each person a copy with their name"),
    option("--person", "ask here and write the labels to NAME.jsonl", "NAME"),
)
async def label(options: Options, settings: Settings) -> int:
    """Labels the relevance of the passages that several search methods find.

    With a judge, writes labels.jsonl. Then --sheet writes a sample for people, --person asks one here.
    """
    del settings
    folder = output_folder(options)
    pool = await _pool(options)
    labels = await _by_model(options, folder, pool) if options.judge_url else None
    if not (options.sheet or options.person):
        if labels is None:
            raise EvaluationError("No judge: give --judge-url and --judge-model, or --sheet, or --person.")
        return OK if len(labels) == len(pool) else FAILED
    return _by_people(options, folder, pool)


async def _pool(options: Options) -> list[Pair]:
    everything = load_cases(options.file)
    cases = sample(everything, options.limit or len(everything))
    pool: list[Pair] = []
    with quiet_pipeline(), progress_bar("Searching") as progress:
        async with options.open_finder({}) as finder:
            for question in await search(finder, cases, "", progress):
                pool += await pairs(question.generation, question.case, pooled(question.legs, question.query))
    return pool


async def _by_model(options: Options, folder: Path, pool: Sequence[Pair]) -> list[Label]:
    tasks = [Task(p.key, RELEVANT, {"question": p.question, "passage": p.passage}) for p in pool]
    async with judging(options) as judge:
        with progress_bar("Judging") as progress:
            judgements = await judge.judge(tasks, progress)
    labels = [_as_label(judgement, options.judge_model) for judgement in judgements if judgement.verdict is not None]
    write_labels(labels, folder / "labels.jsonl")
    relevant = sum(label.relevant for label in labels)
    unsure = sum(judgement.verdict is None and not judgement.error for judgement in judgements)
    failed = sum(bool(judgement.error) for judgement in judgements)
    sys.stdout.write(
        f"{folder / 'labels.jsonl'}: {len(labels)} labels, {relevant} relevant. The model was unsure of {unsure};"
        f" {failed} failed{' and are asked again in the next run' if failed else ''}.\n"
    )
    return labels


def _as_label(judgement: Judgement, by: str) -> Label:
    case, _, chunk = judgement.row.partition("\0")
    return Label(case, chunk, bool(judgement.verdict), by)


def _by_people(options: Options, folder: Path, pool: Sequence[Pair]) -> int:
    file = folder / "labels.jsonl"
    if not file.is_file():
        raise EvaluationError(f"{file} doesn't exist: let a model label first, so that half of the sample is relevant.")
    chosen = drawn(pool, load_labels(file), options.samples)
    if options.sheet:
        write_sheet(chosen, folder / "sheet.csv")
        sys.stdout.write(f"{folder / 'sheet.csv'}: {len(chosen)} pairs; write yes or no into the column relevant.\n")
    if options.person:
        write_labels(_asked(chosen, options.person), folder / f"{options.person}.jsonl")
    return OK


def _asked(chosen: Sequence[Pair], person: str) -> list[Label]:
    """The labels of a person, asked pair by pair; q ends, s skips a pair."""
    labels: list[Label] = []
    for place, pair in enumerate(chosen, start=1):
        sys.stdout.write(
            f"\n--- {place} of {len(chosen)}\nQUESTION: {pair.question}\n{pair.url}\n\n{pair.passage[:LONGEST_PASSAGE]}\n\n"
        )
        while True:
            sys.stdout.write("Does the passage help to answer the question? [y]es [n]o [s]kip [q]uit ")
            sys.stdout.flush()
            word = sys.stdin.readline()
            answer = word.strip().lower()[:1]
            if not word or answer == "q":
                return labels
            if answer in {"y", "n", "s"}:
                break
        if answer != "s":
            labels.append(Label(pair.case, pair.chunk, answer == "y", person))
    return labels


@command(
    "--json",
    argument("labels", "the model's labels", "LABELS.jsonl"),
    argument("people", "completed sheets (.csv) or labels (.jsonl)", "PERSON", nargs=-1, required=True),
)
async def agreement(options: Options, settings: Settings) -> int:
    """Compares the labels of a model with those of people."""
    del settings
    result = agreement_of(load_labels(options.labels), [load_labels(path) for path in options.people])
    print_result(options, asdict(result), text=lambda: _agreement_text(result))
    return OK


def _agreement_text(result: Agreement) -> str:
    among = f"{result.among_people:.2f}" if result.among_people is not None else "unknown with one person"
    against = (
        f"F1 {result.f1:.2f} (precision {result.precision:.2f}, recall {result.recall:.2f}), kappa {result.kappa:.2f}"
    )
    return "\n".join(
        [
            f"{result.n} pairs labelled by the model and {result.people} people; {result.split} even splits are left out.",
            f"Model against the consensus of more than half: {against}.",
            f"People among themselves: kappa {among}.",
        ]
    )
