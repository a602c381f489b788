"""`eval refusals FILE --answerable FILE`: measures whether the assistant refuses unanswerable questions only."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from app.core.settings import Settings
from eval.commands.models import model_from_files, model_name, report_missing
from eval.commands.options import (
    FAILED,
    MODEL,
    NO_MODEL,
    OK,
    OUTPUT,
    Commands,
    OpenFinder,
    check_writable,
    finish,
    new_command,
    share,
)
from eval.commands.progress import progress_bar, quiet_pipeline
from eval.commands.provenance import configuration
from eval.measure.metrics import Estimate
from eval.measure.refusals import MOST, RefusalResult, decide
from eval.measure.retrieval import Plan
from eval.measure.tables import as_table
from eval.questions.cases import load_cases, load_unanswerable
from eval.reports import refusals_page


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "refusals",
        _refusals,
        ("--assistant", *MODEL, "--parallel", *OUTPUT),
        help="measure how many unanswerable and answerable questions are refused",
        description="Measures the assistant's decision, before it writes an answer.",
    )
    parser.add_argument("file", metavar="FILE", help="unanswerable questions, .jsonl: lang, kind, question")
    parser.add_argument("--answerable", required=True, metavar="FILE", help="question set, .jsonl or .csv")
    parser.add_argument(
        "--most",
        type=share,
        default=MOST,
        metavar="X",
        help="largest over-refusal of a chosen threshold (default %(default)s)",
    )


async def _refusals(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    check_writable(options)
    unanswerable, answerable = load_unanswerable(options.file), load_cases(options.answerable)
    model, answerable = model_from_files(options, settings, answerable)
    overrides = NO_MODEL if options.no_model or model else {}
    with quiet_pipeline(), progress_bar("Asking") as progress:
        async with open_finder(overrides, model) as finder:
            plan = Plan(parallel=options.parallel, assistant=options.assistant)
            decisions = await decide(finder, answerable, unanswerable, plan, progress)
    config = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "answerable": Path(options.answerable).name,
        **configuration(options.file, settings, overrides, model_name(options, settings, model)),
    }
    report_missing(options, model, len(answerable) + len(unanswerable))
    result = RefusalResult(decisions, options.most, config)
    finish(options, result.summary(), text=lambda: _text(result), html=lambda: refusals_page(result))
    return FAILED if result.failed else OK


def _text(result: RefusalResult) -> str:
    header = ["", "n", "refused, 95 %", "treated as small talk"]
    rows = [
        [f"{one.kind}, {one.language}", str(one.n), _percent(one.refused), f"{100 * one.smalltalk:.0f} %"]
        for one in result.shares
    ]
    now = result.now
    lines = [
        *as_table(header, rows),
        "",
        (
            f"At {now.threshold:g}: {100 * now.recall:.0f} % of the unanswerable are refused, {100 * now.over_refusal:.1f} %"
            f" of the answerable. Separation {result.separation:.3f} (1 is perfect, .5 is chance)."
        ),
        f"Thresholds, recall and over-refusal (chosen: the best recall with at most {100 * result.most:g} %):",
    ]
    near = [p for p in result.curve if round(p.threshold * 50) % 5 == 0]
    lines += [f"  {p.threshold:.1f}: {100 * p.recall:3.0f} %  {100 * p.over_refusal:4.1f} %" for p in near]
    lines += [
        f"Chosen on the {one.chosen_on} questions: {one.chosen.threshold:g}; on the others it refuses"
        f" {100 * one.reported.recall:.0f} % and {100 * one.reported.over_refusal:.1f} %."
        for one in result.choices
    ]
    if result.failed:
        lines.append(
            f"{len(result.failed)} questions failed and are in no figure, the first with: {result.failed[0].error}"
        )
    return "\n".join(lines)


def _percent(one: Estimate) -> str:
    return f"{100 * one.mean:.0f} % ({100 * one.low:.0f}–{100 * one.high:.0f})"
