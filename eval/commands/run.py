"""`eval run FILE`: contestants answer a question set, and their answers are measured, with or without a judge."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from app.assistants.assembly import opened
from app.core.settings import Settings
from eval.answers.report import answers_text
from eval.answers.sources import Corpus, citing
from eval.answers.types import Answer
from eval.commands.answering import all_answers
from eval.commands.judged import check_judge, measured, write_answers
from eval.commands.options import FAILED, JUDGE, OK, Commands, OpenFinder, new_command, output_folder
from eval.commands.progress import progress_bar, quiet_pipeline
from eval.grid.configurations import Configuration
from eval.questions.cases import Case, load_questions, sample
from eval.questions.documents import parse_rules


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "run",
        _run,
        ("file", "--limit", "--unanswerable", "--url", "--doc-map", "--parallel", *JUDGE, "--evidently"),
        help="let contestants answer a question set and measure the answers",
        description="Saves everything in the directory of --out immediately. The same command continues a stopped run.",
    )
    parser.add_argument("--assistant", action="append", default=[], metavar="ID", help="one of ours; may be repeated")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for answers, judgements and the report")


async def _run(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    check_judge(options, settings)
    rules = parse_rules(options.doc_map)
    questions = load_questions(options.file, options.unanswerable)
    cases = sample(questions, options.limit or len(questions))
    output_folder(options)
    async with opened(settings) as assistants:
        named = options.assistant or ([] if options.url else [""])
        configurations = [Configuration(assistants.get(name).id, {}, name) for name in named]
        first = assistants.get(next(iter(named), ""))
        corpus = await Corpus.of(first, settings.passage_tokens, rules)  # without an index, nobody is asked in vain
        answers = await all_answers(options, settings, configurations, cases)
        sourced = await _sourced(corpus, answers, cases)
        result = await measured(options, settings, assistants, cases, sourced)
    ours = {one.name for one in configurations}
    cited = citing([answer for answer in sourced if answer.contestant not in ours])
    result = replace(result, config={**result.config, "cite indexed pages": cited})
    write_answers(result, options)
    sys.stdout.write(answers_text(result) + "\n")
    return FAILED if result.failed or result.malformed else OK


async def _sourced(corpus: Corpus, answers: Sequence[Answer], cases: Sequence[Case]) -> list[Answer]:
    """The answers with what they are judged against: a refusal of ours as well, or it would be missing among the judged."""
    by_id, found = {case.id: case for case in cases}, list[Answer]()
    with quiet_pipeline(), progress_bar("Finding sources") as progress:
        for answer in answers:
            found.append(await corpus.sourced(answer, by_id[answer.case]))
            progress(len(found), len(answers))
    return found
