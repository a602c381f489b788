"""`eval conversations FILE`: measures retrieval of follow-up questions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.models.protocols import Model
from eval.commands.options import (
    FAILED,
    NO_MODEL,
    OK,
    OUTPUT,
    Commands,
    OpenFinder,
    check_writable,
    finish,
    new_command,
)
from eval.commands.progress import progress_bar, quiet_pipeline
from eval.commands.provenance import configuration
from eval.measure.conversations import FollowUps, distinguishable, follow, follow_ups, ideal_script, summary
from eval.measure.metrics import title
from eval.measure.retrieval import Plan
from eval.measure.tables import as_table, difference_cell, row_name
from eval.questions.cases import Case, load_cases
from eval.questions.documents import parse_rules
from eval.reports import conversations_page
from eval.scripted import ScriptedModel, load_script

_Way: TypeAlias = tuple[str, Mapping[str, Any], Model | None, Sequence[Case]]


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "conversations",
        _conversations,
        ("--assistant", "--no-model", "--scripted-model", "--k", "--parallel", "--doc-map", *OUTPUT),
        help="measure retrieval of follow-up questions",
        description="Asks each follow-up question in its conversation and as a complete question: without a model, with"
        " a scripted model that resolves every reference, and with the configured model.",
    )
    parser.add_argument("file", metavar="FILE", help="conversations, .jsonl: messages, standalone, doc, lang")


async def _conversations(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    check_writable(options)
    cases = follow_ups(load_cases(options.file))
    prompts = load_prompts(settings.languages, settings.prompts)
    known = distinguishable(cases)
    if len(known) < len(cases):
        sys.stderr.write(
            f"{len(cases) - len(known)} of {len(cases)} conversations end with the same words as another one: a scripted"
            " model can't distinguish them, so it is measured without them.\n"
        )
    ways: list[_Way] = [("without a model", NO_MODEL, None, cases)]
    if known:
        script = load_script(options.scripted_model, cases) if options.scripted_model else ideal_script(known, prompts)
        ways.append(("with a scripted model", NO_MODEL, ScriptedModel(script, prompts), known))
    if (settings.llm_url or settings.llm_class) and not options.no_model:
        ways.append((f"with {settings.llm_model or settings.llm_class}", {}, None, cases))
    measured = [await _follow(options, settings, open_finder, way) for way in ways]
    finish(options, summary(measured), text=lambda: _text(measured), html=lambda: conversations_page(measured))
    return FAILED if any(one.asked.failed or one.standalone.failed for one in measured) else OK


async def _follow(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder, way: _Way) -> FollowUps:
    name, overrides, model, cases = way
    top_k = max(settings.top_k, options.k)  # k pages can't come from fewer than k passages
    if top_k != settings.top_k:
        overrides = {**overrides, "top_k": top_k}
    llm = model.name if model else settings.llm_model if "llm_url" not in overrides else ""
    plan = Plan(options.k, options.parallel, options.assistant, parse_rules(options.doc_map))
    config = configuration(options.file, settings, overrides, llm)
    with quiet_pipeline(), progress_bar(f"Asking {name}") as progress:
        async with open_finder(overrides, model) as finder:
            return await follow(finder, cases, plan, name, config=config, progress=progress)


def _text(measured: Sequence[FollowUps]) -> str:
    header = ["", "n", f"{title('rr', measured[0].asked.k)} as asked", "spelled out", "difference", "language detected"]
    rows = []
    for one in measured:
        rows.append([one.name, *[""] * (len(header) - 1)])
        for row, apart in zip(one.asked.rows, one.difference.rows, strict=True):
            alone = one.standalone.row(row.language, row.variant, cross=row.cross)
            assert alone is not None  # both have the same questions
            figures = [f"{each.measures['rr'].mean:.3f}" for each in (row, alone)]
            rows.append(["  " + row_name(row), str(row.n), *figures, difference_cell(apart.measures["rr"]), ""])
        rows[-1][-1] = f"{100 * one.asked.language_right:.0f} %"
    failed = sum(len(one.asked.failed) + len(one.standalone.failed) for one in measured)
    lost = [f"{failed} searches failed: they are misses."] if failed else []
    return "\n".join([*as_table(header, rows), "", "* the 95 % interval doesn't contain 0", *lost])
