"""`eval grid FILE GRID.toml`: one question set over every combination of settings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.core.settings import Settings
from eval.commands.asking import progress_bar, quiet_pipeline, tell_reindexing
from eval.commands.measured import configuration as measured_with
from eval.commands.retrieval import add_documents_option
from eval.commands.types import FAILED, OK, Commands, OpenFinder, as_json, positive, refuse_unwritable, write_text
from eval.errors import EvaluationError
from eval.measure.grid import Configuration, grid_json, grid_text, indexed, load_grid
from eval.measure.result import RetrievalResult
from eval.measure.retrieval import Plan, evaluate
from eval.page import grid_page, write_page
from eval.questions.cases import Case, load_cases, sample
from eval.questions.documents import parse_rules


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "grid",
        help="measure every combination of settings in one run",
        description="Settings that change the index (chunk size, embedder) are measured on copies made from the indexed pages.",
    )
    parser.set_defaults(evaluation=_grid)
    parser.add_argument("file", metavar="FILE", help="question set, .jsonl or .csv")
    parser.add_argument("grid", metavar="GRID.toml", help="[axes] with a list of values for each setting")
    parser.add_argument("--k", type=positive, default=5, help="how many pages count (default 5)")
    parser.add_argument("--limit", type=positive, metavar="N", help="only N questions, the same ones each time")
    parser.add_argument("--parallel", type=positive, default=4, metavar="N", help="questions at once (default 4)")
    parser.add_argument("--out", default="", metavar="FILE", help="keep everything as JSON")
    parser.add_argument("--html", default="", metavar="FILE", help="write a page with bars and differences")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_documents_option(parser)


async def _grid(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    refuse_unwritable(options.out, "--out")
    refuse_unwritable(options.html, "--html")
    configurations = load_grid(options.grid)
    everything = load_cases(options.file)
    cases = sample(everything, options.limit or len(everything))
    plan = Plan(options.k, options.parallel, "", parse_rules(options.doc_map))
    results = await measure_all(configurations, settings, Measuring(options.file, cases, plan), open_finder)
    kept = as_json(grid_json(results))
    if options.out:
        write_text(kept, options.out)
    if options.html:
        write_page(grid_page(results), options.html)
    sys.stdout.write((kept if options.json else grid_text(results)) + "\n")
    return FAILED if any(result.failed for _, result in results) else OK


@dataclass(frozen=True, slots=True)
class Measuring:
    """The questions, the name of their set, and how they are asked."""

    set_name: str
    cases: Sequence[Case]
    plan: Plan


async def measure_all(
    configurations: Sequence[Configuration], settings: Settings, measuring: Measuring, open_finder: OpenFinder
) -> list[tuple[Configuration, RetrievalResult]]:
    """Retrieval with each configuration, on an index of its own where it needs one."""
    for one in configurations:
        top_k = Settings.load(**one.settings).top_k
        if top_k < measuring.plan.k:
            raise EvaluationError(
                f"{one.name}: {top_k} passages can't hold {measuring.plan.k} pages. Set a larger top_k, or --k."
            )
    with quiet_pipeline():
        async with indexed(settings, configurations, tell_reindexing) as all_of:
            return [
                (one, await _measure(settings, one, overrides, measuring, open_finder)) for one, overrides in all_of
            ]


async def _measure(
    settings: Settings,
    one: Configuration,
    overrides: Mapping[str, Any],
    measuring: Measuring,
    open_finder: OpenFinder,
) -> RetrievalResult:
    plan = replace(measuring.plan, assistant=one.assistant or measuring.plan.assistant)
    config = measured_with(measuring.set_name, settings, overrides, Settings.load(**overrides).llm_model)
    with progress_bar(one.name) as progress:
        async with open_finder(overrides) as finder:
            return await evaluate(finder, measuring.cases, plan, config=config, progress=progress)
