"""`eval run FILE`: contestants answer a set, and the answers are measured, with a judge or without."""

from __future__ import annotations

import argparse
import sys

from app.assistants.assembly import opened
from app.core.settings import Settings
from eval.answers.report import answers_text
from eval.commands.answering import add_url_option, all_answers
from eval.commands.judged import add_judge_options, measured, refuse_judge, write_answers
from eval.commands.options import FAILED, OK, Commands, OpenFinder, add_parallel_option, add_set_options, prepared
from eval.grid.configurations import Configuration
from eval.questions.cases import load_questions, sample


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "run",
        help="let contestants answer a question set and measure the answers",
        description="Everything is kept in the directory of --out as it comes: the same command goes on where it was stopped.",
    )
    parser.set_defaults(evaluation=_run)
    add_set_options(parser)
    parser.add_argument("--unanswerable", default="", metavar="FILE", help="questions that must be declined, .jsonl")
    parser.add_argument("--assistant", action="append", default=[], metavar="ID", help="one of ours; may be repeated")
    add_url_option(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for answers, judgements and the report")
    add_parallel_option(parser)
    add_judge_options(parser)


async def _run(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    refuse_judge(options, settings)
    questions = load_questions(options.file, options.unanswerable)
    cases = sample(questions, options.limit or len(questions))
    prepared(options.out)
    async with opened(settings) as assistants:
        named = options.assistant or ([] if options.url else [""])
        configurations = [Configuration(assistants.get(name).id, {}, name) for name in named]
        answers = await all_answers(options, settings, configurations, cases)
        result = await measured(options, settings, assistants, cases, answers)
    write_answers(result, options)
    sys.stdout.write(answers_text(result) + "\n")
    return FAILED if result.failed or result.malformed else OK
