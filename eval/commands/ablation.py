"""`eval ablation FILE`: `eval run` over the steps of one assistant, each box put in or taken out."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from app.assembly import opened
from app.assistant import Assistants
from app.assistants_file import AssistantsFile, AssistantTable, read_assistants
from app.core.language import LanguageDetector
from app.core.settings import Settings
from app.pipeline.registry import Tools
from eval.answers.types import load_questions
from eval.answers.worth import worth_json, worth_page, worth_text, worths
from eval.commands.answering import answers_of
from eval.commands.retrieval import add_documents_option
from eval.commands.run import add_judge_options, measured, prepared, refuse_judge
from eval.commands.stand_in import add_known_option, add_stand_in_options, stand_in, tell_missing
from eval.commands.types import FAILED, NO_MODEL, OK, Commands, OpenFinder, as_json, positive, write_text
from eval.errors import EvaluationError
from eval.measure.ablation import configurations, variants, write_assistants
from eval.page import write_page
from eval.questions.cases import sample
from eval.questions.documents import Documents, parse_rules


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "ablation",
        help="measure what each step is worth, one at a time",
        description="Puts every step that can be there into an assistant, or takes it out, and lets each way of steps"
        " answer. What needs a model or a reranker that isn't there is named. Answers are kept in the directory of --out.",
    )
    parser.set_defaults(evaluation=_ablation)
    parser.add_argument("file", metavar="FILE", help="question set, .jsonl or .csv")
    parser.add_argument("--unanswerable", default="", metavar="FILE", help="questions that must be declined, .jsonl")
    parser.add_argument("--assistant", default="", metavar="ID", help="another than the first one")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for answers, ablation.json and .html")
    parser.add_argument("--limit", type=positive, metavar="N", help="only N questions, the same ones each time")
    parser.add_argument("--k", type=positive, default=5, help="how many pages count (default 5)")
    parser.add_argument("--parallel", type=positive, default=1, metavar="N", help="questions at once (default 1)")
    parser.add_argument("--no-model", action="store_true", help="without the configured language model")
    add_stand_in_options(parser)
    add_known_option(parser)
    add_documents_option(parser)
    add_judge_options(parser)


async def _ablation(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    refuse_judge(options, settings)
    questions = load_questions(options.file, options.unanswerable)
    model, answerable = stand_in(options, settings, [case for case in questions if case.doc])
    questions = (*answerable, *(case for case in questions if not case.doc))
    cases = sample(questions, options.limit or len(questions))
    if options.no_model:
        settings = settings.model_copy(update=NO_MODEL)
    folder = prepared(options.out)
    file = read_assistants(settings)
    entry = _chosen(file, options.assistant)
    async with opened(settings, model=model) as assistants:
        found = variants(entry.steps, _tools(assistants, settings))
        write_assistants(file, entry, [one for one in found if not one.needs], folder / "assistants.toml")
        grid = [
            replace(one, settings={**one.settings, **(NO_MODEL if options.no_model else {})})
            for one in configurations(found, folder / "assistants.toml")
        ]
        answers = await answers_of(options, settings, grid, cases, model)
        result = await measured(options, settings, assistants, cases, answers)
    result.save(folder / "answers.json")
    tell_missing(options, model, len(cases))
    rows = worths(found, result.scored, Documents((), parse_rules(options.doc_map)), options.k)
    lead = f"{len(cases)} questions of {Path(options.file).name}, language model: {model.name if model else settings.llm_model or 'none'}"
    write_text(as_json({"rows": worth_json(rows), "config": dict(result.config)}), str(folder / "ablation.json"))
    write_page(worth_page(rows, options.k, lead), folder / "ablation.html")
    sys.stdout.write(worth_text(rows, options.k) + "\n")
    return FAILED if result.failed or result.malformed else OK


def _chosen(file: AssistantsFile, name: str) -> AssistantTable:
    entry = next((one for one in file.assistants if not name or one.id == name), None)
    if entry is None:
        raise EvaluationError(
            f"There is no assistant {name!r}. There is: {', '.join(one.id for one in file.assistants)}."
        )
    return entry


def _tools(assistants: Assistants, settings: Settings) -> Tools:
    detector = LanguageDetector(assistants.prompts.languages, settings.default_language)
    return Tools(settings, assistants.prompts, detector, assistants.model, assistants.embedder, assistants.reranker)
