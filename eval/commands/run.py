"""`eval run FILE`: contestants answer a question set, and their answers are measured, with or without a judge."""

from __future__ import annotations

import argparse
import sys

from app.assistants.assembly import opened
from app.core.settings import Settings
from eval.answers.report import answers_text
from eval.commands.answering import all_answers
from eval.commands.judged import check_judge, measured, write_answers
from eval.commands.options import FAILED, JUDGE, OK, Commands, OpenFinder, new_command, output_folder
from eval.grid.configurations import Configuration
from eval.questions.cases import load_questions, sample


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "run",
        _run,
        ("file", "--limit", "--unanswerable", "--url", "--parallel", *JUDGE, "--evidently"),
        help="let contestants answer a question set and measure the answers",
        description="Saves everything in the directory of --out immediately. The same command continues a stopped run.",
    )
    parser.add_argument("--assistant", action="append", default=[], metavar="ID", help="one of ours; may be repeated")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for answers, judgements and the report")


async def _run(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    check_judge(options, settings)
    questions = load_questions(options.file, options.unanswerable)
    cases = sample(questions, options.limit or len(questions))
    output_folder(options)
    async with opened(settings) as assistants:
        named = options.assistant or ([] if options.url else [""])
        configurations = [Configuration(assistants.get(name).id, {}, name) for name in named]
        answers = await all_answers(options, settings, configurations, cases)
        result = await measured(options, settings, assistants, cases, answers)
    write_answers(result, options)
    sys.stdout.write(answers_text(result) + "\n")
    return FAILED if result.failed or result.malformed else OK
