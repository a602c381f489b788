"""`eval retrieval FILE`: measures whether the right pages are found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from app.core.settings import Settings
from app.core.turn import Request
from app.index.protocols import Generation
from app.models import Embedder, open_embedder
from app.models.protocols import for_index
from eval.commands.models import model_from_files, model_name, report_missing
from eval.commands.options import (
    FAILED,
    MEASURE,
    MODEL,
    NO_MODEL,
    OK,
    Commands,
    OpenFinder,
    check_writable,
    new_command,
    print_result,
)
from eval.commands.progress import progress_bar, quiet_pipeline
from eval.commands.provenance import configuration
from eval.errors import EvaluationError
from eval.files import write_text
from eval.label.files import load_labels, relevant_by_case
from eval.measure.depths import DEPTH
from eval.measure.embedding_space import draw
from eval.measure.result import RetrievalResult, load_result
from eval.measure.retrieval import Plan, evaluate
from eval.measure.tables import retrieval_markdown, retrieval_text
from eval.questions.cases import Case, after_another, load_cases, sample
from eval.questions.documents import parse_rules
from eval.reports import retrieval_page


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "retrieval",
        _retrieval,
        ("file", "--limit", "--assistant", "--doc-map", *MODEL, "--labels", *MEASURE),
        help="measure on a question set whether the right pages are found",
    )
    parser.add_argument("--no-cross", action="store_true", help="leave out questions whose page is in another language")
    parser.add_argument(
        "--after-another", action="store_true", help="ask each question after a question about something else"
    )


async def _retrieval(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    check_files(options)
    model, known = model_from_files(options, settings, load_cases(options.file))
    cases = _chosen(known, options)
    plan, passages = plan_of(options, settings)
    overrides = {**(NO_MODEL if options.no_model else {}), **passages}
    config = configuration(options.file, settings, overrides, model_name(options, settings, model))
    with quiet_pipeline(), progress_bar("Asking") as progress:
        async with open_finder(overrides, model) as finder:
            result = await evaluate(finder, cases, plan, config=config, progress=progress)
            if options.html:
                turn = await finder.find(Request(cases[0].messages, plan.assistant, "eval-page"))
                embedder = open_embedder(settings)
                await write_report(result, options, turn.generation, embedder)
                await embedder.close()
    report_missing(options, model, len(cases))
    return finish_retrieval(result, options)


def plan_of(options: argparse.Namespace, settings: Settings) -> tuple[Plan, dict[str, Any]]:
    """The plan, and the setting with which the assistant finds enough passages for it."""
    # k pages can't come from fewer than k passages
    passages = options.passages or max(settings.top_k, options.k)
    asked = max(passages, DEPTH) if options.deep else passages
    rules = parse_rules(getattr(options, "doc_map", ()))
    labels = relevant_by_case(load_labels(options.labels)) if getattr(options, "labels", "") else {}
    deep = passages if options.deep else 0
    plan = Plan(options.k, options.parallel, getattr(options, "assistant", ""), rules, deep, labels)
    return plan, {"top_k": asked} if asked != settings.top_k else {}


async def write_report(
    result: RetrievalResult, options: argparse.Namespace, generation: Generation, embedder: Embedder
) -> None:
    """Write the page of --html, with the picture of the embedding space."""
    before = load_result(options.against) if options.against else None
    write_text(
        retrieval_page(result, before, await draw(generation, for_index(embedder, generation.info.recipe.embedder))),
        options.html,
    )


def finish_retrieval(result: RetrievalResult, options: argparse.Namespace) -> int:
    """Save and print the result; the exit code."""
    if options.out:
        result.save(options.out)
    text = retrieval_markdown if options.markdown else retrieval_text
    print_result(options, result.summary(), text=lambda: text(result))
    return FAILED if result.failed else OK


def check_files(options: argparse.Namespace) -> None:
    """Raises `EvaluationError` before a run, for files that can't be written or read at its end."""
    check_writable(options)
    if options.against:
        load_result(options.against)


def _chosen(cases: Sequence[Case], options: argparse.Namespace) -> tuple[Case, ...]:
    chosen = [case for case in cases if not (options.no_cross and case.cross)]
    if not chosen:
        raise EvaluationError(f"{options.file}: no question is left.")
    asked = sample(chosen, options.limit or len(chosen))
    if options.after_another and not (asked := after_another(asked)):
        raise EvaluationError(f"{options.file}: no two questions of a language are about different pages.")
    return asked
