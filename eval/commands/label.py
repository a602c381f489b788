"""`eval label FILE`: labels found passages as relevant or not, by a model or by a person in the terminal; `eval
agreement`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from app.core.settings import Settings
from eval.commands.judged import judging
from eval.commands.options import (
    FAILED,
    JUDGE,
    OK,
    Commands,
    OpenFinder,
    new_command,
    output_folder,
    positive,
    print_result,
)
from eval.commands.progress import progress_bar, quiet_pipeline
from eval.errors import EvaluationError
from eval.grid.weights import search
from eval.judge import Judgement, Task
from eval.label.agreement import Agreement, agreement
from eval.label.files import Label, drawn, load_labels, write_labels, write_sheet
from eval.label.pool import RELEVANT, Pair, pairs, pooled
from eval.questions.cases import load_cases, sample

LONGEST_PASSAGE = 1500


def add_command(commands: Commands) -> None:
    """Register `label` and `agreement`."""
    parser = new_command(
        commands,
        "label",
        _label,
        ("file", "--limit", "--parallel", *JUDGE),
        help="label the relevance of the passages that several search methods find",
        description="With a judge, writes labels.jsonl. Then --sheet writes a sample for people, --person asks one here.",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for labels, judgements and sheets")
    parser.add_argument("--samples", type=positive, default=40, metavar="N", help="pairs for a person (default 40)")
    parser.add_argument("--sheet", action="store_true", help="write sheet.csv: give each person a copy with their name")
    parser.add_argument("--person", default="", metavar="NAME", help="ask here and write the labels to NAME.jsonl")
    check = new_command(
        commands, "agreement", _agreement, ("--json",), help="compare the labels of a model with those of people"
    )
    check.add_argument("labels", metavar="LABELS.jsonl", help="the model's labels")
    check.add_argument("people", nargs="+", metavar="PERSON", help="completed sheets (.csv) or labels (.jsonl)")


async def _label(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del settings
    folder = output_folder(options)
    found = await _pool(options, open_finder)
    labels = await _by_model(options, folder, found) if options.judge_url else None
    if not (options.sheet or options.person):
        if labels is None:
            raise EvaluationError("No judge: give --judge-url and --judge-model, or --sheet, or --person.")
        return OK if len(labels) == len(found) else FAILED
    return _by_people(options, folder, found)


async def _pool(options: argparse.Namespace, open_finder: OpenFinder) -> list[Pair]:
    everything = load_cases(options.file)
    cases = sample(everything, options.limit or len(everything))
    found: list[Pair] = []
    with quiet_pipeline(), progress_bar("Searching") as progress:
        async with open_finder({}) as finder:
            for one in await search(finder, cases, "", progress):
                found += await pairs(one.generation, one.case, pooled(one.legs, one.query))
    return found


async def _by_model(options: argparse.Namespace, folder: Path, found: Sequence[Pair]) -> list[Label]:
    tasks = [Task(p.key, RELEVANT, {"question": p.question, "passage": p.passage}) for p in found]
    async with judging(options) as judge:
        with progress_bar("Judging") as progress:
            judgements = await judge.judge(tasks, progress)
    labels = [_as_label(one, options.judge_model) for one in judgements if one.verdict is not None]
    write_labels(labels, folder / "labels.jsonl")
    relevant = sum(label.relevant for label in labels)
    unsure = sum(one.verdict is None and not one.error for one in judgements)
    failed = sum(bool(one.error) for one in judgements)
    sys.stdout.write(
        f"{folder / 'labels.jsonl'}: {len(labels)} labels, {relevant} relevant. The model was unsure of {unsure};"
        f" {failed} failed{' and are asked again in the next run' if failed else ''}.\n"
    )
    return labels


def _as_label(judgement: Judgement, by: str) -> Label:
    case, _, chunk = judgement.row.partition("\0")
    return Label(case, chunk, bool(judgement.verdict), by)


def _by_people(options: argparse.Namespace, folder: Path, found: Sequence[Pair]) -> int:
    kept = folder / "labels.jsonl"
    if not kept.is_file():
        raise EvaluationError(f"{kept} doesn't exist: let a model label first, so that half of the sample is relevant.")
    chosen = drawn(found, load_labels(kept), options.samples)
    if options.sheet:
        write_sheet(chosen, folder / "sheet.csv")
        sys.stdout.write(f"{folder / 'sheet.csv'}: {len(chosen)} pairs; write yes or no into the column relevant.\n")
    if options.person:
        write_labels(_asked(chosen, options.person), folder / f"{options.person}.jsonl")
    return OK


def _asked(chosen: Sequence[Pair], person: str) -> list[Label]:
    """The labels of a person, asked pair by pair; q ends, s skips a pair."""
    labels: list[Label] = []
    for number, pair in enumerate(chosen, start=1):
        sys.stdout.write(
            f"\n--- {number} of {len(chosen)}\nQUESTION: {pair.question}\n{pair.url}\n\n{pair.passage[:LONGEST_PASSAGE]}\n\n"
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


async def _agreement(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del settings, open_finder
    found = agreement(load_labels(options.labels), [load_labels(path) for path in options.people])
    print_result(options, asdict(found), text=lambda: _agreement_text(found))
    return OK


def _agreement_text(found: Agreement) -> str:
    among = f"{found.among_people:.2f}" if found.among_people is not None else "unknown with one person"
    against = f"F1 {found.f1:.2f} (precision {found.precision:.2f}, recall {found.recall:.2f}), kappa {found.kappa:.2f}"
    return "\n".join(
        [
            f"{found.n} pairs labelled by the model and {found.people} people; {found.split} even splits are left out.",
            f"Model against the consensus of more than half: {against}.",
            f"People among themselves: kappa {among}.",
        ]
    )
