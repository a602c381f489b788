"""`eval grid FILE GRID.toml`: one question set over every combination of settings."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.core.settings import Settings
from app.core.store import open_store
from eval.cases import Case, load_cases, sample
from eval.commands.asking import progress_bar, quiet_pipeline
from eval.commands.measured import configuration as measured_with
from eval.commands.retrieval import add_documents_option
from eval.commands.types import FAILED, OK, Commands, OpenFinder, as_json, positive, refuse_unwritable, write_text
from eval.documents import parse_rules
from eval.errors import EvaluationError
from eval.grid import Configuration, grid_json, grid_text, load_grid
from eval.rebuild import rebuild
from eval.result import RetrievalResult
from eval.retrieval import Plan, evaluate


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
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_documents_option(parser)


async def _grid(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    refuse_unwritable(options.out, "--out")
    configurations = load_grid(options.grid)
    for one in configurations:
        Settings.load(**one.settings)  # a wrong value is told before the first question
    everything = load_cases(options.file)
    cases = sample(everything, options.limit or len(everything))
    with tempfile.TemporaryDirectory(prefix="docs-assistant-eval-") as folder, quiet_pipeline():
        stores = await _stores(settings, configurations, Path(folder))
        results = [
            (one, await _measure(options, settings, one, {**one.settings, **_store(stores, one)}, cases, open_finder))
            for one in configurations
        ]
    kept = as_json(grid_json(results))
    if options.out:
        write_text(kept, options.out)
    sys.stdout.write((kept if options.json else grid_text(results)) + "\n")
    return FAILED if any(result.failed for _, result in results) else OK


async def _stores(settings: Settings, configurations: Sequence[Configuration], folder: Path) -> dict[str, str]:
    """An index for each way of making one; the live one serves those that change nothing of it."""
    found: dict[str, str] = {}
    live = open_store(settings)
    try:
        for one in configurations:
            key = as_json(one.index)
            if one.index and key not in found:
                found[key] = str(folder / str(len(found)))
                sys.stderr.write(f"Indexing the pages anew: {one.name}\n")
                await rebuild(await live.live(), Settings.load(**{**one.settings, "store": found[key]}))
    finally:
        await live.close()
    return found


def _store(stores: Mapping[str, str], one: Configuration) -> dict[str, str]:
    return {"store": stores[as_json(one.index)]} if one.index else {}


async def _measure(  # what a run needs
    options: argparse.Namespace,
    settings: Settings,
    one: Configuration,
    overrides: Mapping[str, Any],
    cases: Sequence[Case],
    open_finder: OpenFinder,
) -> RetrievalResult:
    top_k = Settings.load(**overrides).top_k
    if top_k < options.k:
        raise EvaluationError(f"{one.name}: {top_k} passages can't hold {options.k} pages. Set a larger top_k, or --k.")
    plan = Plan(options.k, options.parallel, "", parse_rules(options.doc_map))
    config = measured_with(options.file, settings, overrides, settings.llm_model)
    with progress_bar(one.name) as progress:
        async with open_finder(overrides) as finder:
            return await evaluate(finder, cases, plan, config=config, progress=progress)
