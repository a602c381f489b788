"""`eval examples` measures what fitted decisions are made by, and `eval fit` fits their numbers to several such files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from app.core.fitted import Decision, Fitted
from app.core.settings import Settings
from eval.commands.measuring import own_finder
from eval.commands.options import (
    NO_MODEL,
    OK,
    Options,
    argument,
    check_writable,
    command,
    option,
    progress_bar,
    quiet_pipeline,
)
from eval.files import json_lines, parse_row, write_json_lines, write_text
from eval.measure.fitting import Example, Figures, examples, fit
from eval.measure.tables import as_table
from eval.questions.cases import load_cases
from eval.questions.own_docs import own_set

EXAMPLES: dict[Decision, str] = {"sure": "quotations", "stated": "statements"}
"""What each decision is about."""
WRITTEN = "# Fitted by `docs-assistant eval fit` (docs: evaluate, Fitted decisions); the weights are of features from 0 to 1.\n"


@command(
    "--parallel --out",
    argument(
        "file", "question set with evidence, .jsonl or .csv; this product's own one if it isn't given", required=False
    ),
)
async def examples_(options: Options, settings: Settings) -> int:
    """Measures, without a language model, by which numbers each quotation of a question set is found sure, and whether it is right.

    Without a set, indexes and measures this product's own documentation.
    """
    check_writable(options, "out")
    with nullcontext(options.file) if options.file else own_set() as path:
        cases = load_cases(path)
    with quiet_pipeline(), progress_bar("Quoting") as progress:
        async with options.open_finder(NO_MODEL) if options.file else own_finder(settings) as finder:
            rows = await examples(finder.assistants.get(""), cases, options.parallel, progress)
    if options.out:
        write_json_lines((asdict(row) for row in rows), options.out)
    sys.stdout.write(f"{len(rows)} quotations, of which {sum(row.right for row in rows)} are right.\n")
    return OK


@command(
    "",
    argument(
        "files", "files of eval examples, or of eval faults --out, of one site each", "FILE", nargs=-1, required=True
    ),
    option("--decision", "what the files have examples of", type=click.Choice(tuple(EXAMPLES)), default="sure"),
    option("--out", "write the fitted numbers, as app/fitted.toml has them", "FILE"),
)
async def fit_(options: Options, settings: Settings) -> int:
    """Fits the decision whether a quotation is sure, or whether the passages state a sentence (`stated`), and judges each set by the numbers
    of the others. Needs scikit-learn.
    """
    del settings
    check_writable(options, "out")
    sets = {Path(path).stem: [parse_row(Example, *row) for row in json_lines(path)] for path in options.files}
    decision: Decision = options.decision
    model, figures = fit(sets, decision)
    header = ["fitted on the others", "n", "AUC", decision, "right", "right by today's numbers"]
    rows = [
        [one.name, str(one.n), f"{one.auc:.3f}", str(one.sure), f"{one.right:.3f}", f"{one.right_now:.3f}"]
        for one in figures
    ]
    sys.stdout.write("\n".join([*as_table(header, rows), "", *_lines(decision, model, figures)]) + "\n")
    if options.out:
        write_text("\n".join([WRITTEN, *_lines(decision, model, figures)]) + "\n", options.out)
    return OK


def _lines(decision: Decision, model: Fitted, figures: Sequence[Figures]) -> list[str]:
    def table(values: Mapping[str, float]) -> str:
        return "{ " + ", ".join(f"{name} = {value:g}" for name, value in values.items()) + " }"

    return [
        f"[{decision}]",
        f"date = {datetime.now(UTC).date().isoformat()}",
        f"{EXAMPLES[decision]} = {table({one.name: one.n for one in figures})}",
        f"auc = {table({one.name: round(one.auc, 3) for one in figures})} # of each set, by the numbers of the others",
        f"least = {model.least:.3f}",
        f"bias = {model.bias:g}",
        f"weights = {table(model.weights)}",
    ]
