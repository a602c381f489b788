"""`eval retrieval FILE`: whether the right pages are found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from app.core.settings import Settings
from app.core.turn import Request
from app.index.protocols import Generation
from app.models import Embedder, open_embedder
from eval.commands.options import (
    FAILED,
    NO_MODEL,
    OK,
    Commands,
    OpenFinder,
    add_assistant_option,
    add_documents_option,
    add_model_options,
    add_output_options,
    add_pace_options,
    add_set_options,
    as_json,
    model_name,
    positive,
    refuse_unwritable,
    report_missing,
    stand_in,
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
    retrieval = commands.add_parser("retrieval", help="measure on a question set whether the right pages are found")
    retrieval.set_defaults(evaluation=_retrieval)
    add_set_options(retrieval)
    add_assistant_option(retrieval)
    retrieval.add_argument(
        "--no-cross", action="store_true", help="leave out questions whose page is in another language"
    )
    add_documents_option(retrieval)
    retrieval.add_argument(
        "--after-another", action="store_true", help="ask each question behind one on something else: a change of topic"
    )
    add_model_options(retrieval)
    retrieval.add_argument("--labels", default="", metavar="FILE", help="relevant chunks, as eval label keeps them")
    add_measuring_options(retrieval)


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    """How deep and how fast is measured, and what becomes of the result."""
    add_pace_options(parser)
    parser.add_argument(
        "--passages", type=positive, metavar="N", help="ask for N passages, not the assistant's own number"
    )
    parser.add_argument(
        "--deep", action="store_true", help="measure pages and chunks at k = 1, 3, 5, 10, 15 and 20 as well"
    )
    add_output_options(
        parser, out="keep everything, for eval compare", html="write a page with charts, worst questions, traces"
    )
    parser.add_argument("--against", default="", metavar="FILE", help="a kept result that the page compares with")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")


async def _retrieval(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    refuse_page(options)
    model, known = stand_in(options, settings, load_cases(options.file))
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
    return finished(result, options)


def plan_of(options: argparse.Namespace, settings: Settings) -> tuple[Plan, dict[str, Any]]:
    """The plan, and the setting that lets the assistant find as many passages as it needs."""
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
    """The page that --html names, with the picture of the embedding space."""
    before = load_result(options.against) if options.against else None
    write_text(retrieval_page(result, before, await draw(generation, embedder)), options.html)


def finished(result: RetrievalResult, options: argparse.Namespace) -> int:
    """Keep and print the result; the exit code."""
    if options.out:
        result.save(options.out)
    if options.json:
        text = as_json(result.summary())
    else:
        text = retrieval_markdown(result) if options.markdown else retrieval_text(result)
    sys.stdout.write(text + "\n")
    return FAILED if result.failed else OK


def refuse_page(options: argparse.Namespace) -> None:
    """What is wrong with the files to write, before anything is asked."""
    refuse_unwritable(options)
    if options.against:
        load_result(options.against)


def _chosen(cases: Sequence[Case], options: argparse.Namespace) -> tuple[Case, ...]:
    chosen = [case for case in cases if not (options.no_cross and case.cross)]
    if not chosen:
        raise EvaluationError(f"{options.file}: no question is left to ask.")
    asked = sample(chosen, options.limit or len(chosen))
    if options.after_another and not (asked := after_another(asked)):
        raise EvaluationError(f"{options.file}: no two questions of a language are about different pages.")
    return asked
