"""`eval docs`: indexes this product's own documentation and measures retrieval over it. `make eval` runs it."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from app.assistants.assembly import opened
from app.core.settings import Settings
from eval.commands.finder import AssistantFinder
from eval.commands.options import MEASURE, NO_MODEL, Commands, OpenFinder, new_command
from eval.commands.progress import progress_bar, quiet_pipeline
from eval.commands.provenance import configuration
from eval.commands.retrieval import check_files, finish_retrieval, plan_of, write_report
from eval.measure.quotations import quotations
from eval.measure.result import RetrievalResult
from eval.measure.retrieval import evaluate
from eval.questions.cases import load_cases
from eval.questions.own_docs import indexed_docs, own_set


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "docs",
        _docs,
        MEASURE,
        help="index this product's own documentation and measure retrieval over it",
        description="Needs no server and no model. Uses a temporary index of its own.",
    )
    parser.add_argument("--docs", type=Path, metavar="DIR", help="another version of the documentation")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="the question set of that version")


async def _docs(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder  # the configured index is not what is measured
    check_files(options)
    return finish_retrieval(await measure_docs(options, settings), options)


async def measure_docs(options: argparse.Namespace, settings: Settings) -> RetrievalResult:
    """The result over our own documentation, with this embedder and these settings, without a language model."""
    plan, passages = plan_of(options, settings)
    top_k = settings.top_k
    settings = settings.model_copy(update={**passages, **NO_MODEL, "summaries": False, "questions": False})
    questions = nullcontext(options.questions) if options.questions else own_set()
    with questions as path, quiet_pipeline(), progress_bar("Asking") as progress:
        config = configuration(path.name, settings, {"store": "data"}, "")
        async with indexed_docs(settings, options.docs) as own:
            cases = load_cases(path)
            async with opened(own) as assistants:
                result = await evaluate(AssistantFinder(assistants), cases, plan, config=config, progress=progress)
                if options.html:
                    await write_report(result, options, await assistants.store.live(), assistants.embedder)
            # answers are made from as many passages as are set, however many were asked for above
            async with opened(own.model_copy(update={"top_k": top_k})) as assistants:
                said = await quotations(assistants.get(""), cases, plan.parallel, progress)
            return replace(result, quotations=said)
