"""`eval run FILE`: contestants answer a set, and the answers are measured, with a judge or without."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from app.assembly import opened
from app.assistant import Assistants
from app.core.language import LanguageDetector
from app.core.models.openai import Endpoint, OpenAIModel
from app.core.settings import Settings
from eval.answers.evidently_report import evidently_page
from eval.answers.report import answers_page, answers_text
from eval.answers.result import AnswerResult
from eval.answers.score import Scorer, tasks
from eval.answers.types import Answer, load_questions
from eval.commands.answering import CONTESTANT_KEY, all_answers
from eval.commands.asking import progress_bar
from eval.commands.measured import configuration
from eval.commands.types import FAILED, OK, Commands, OpenFinder, positive
from eval.errors import EvaluationError
from eval.judge import Cache, Judge, Judgement, Pace, criteria
from eval.page import write_page
from eval.questions.cases import Case, sample

KEY = "EVAL_JUDGE_KEY"


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "run",
        help="let contestants answer a question set and measure the answers",
        description="Everything is kept in the directory of --out as it comes: the same command goes on where it was stopped.",
    )
    parser.set_defaults(evaluation=_run)
    parser.add_argument("file", metavar="FILE", help="question set, .jsonl or .csv")
    parser.add_argument("--unanswerable", default="", metavar="FILE", help="questions that must be declined, .jsonl")
    parser.add_argument("--assistant", action="append", default=[], metavar="ID", help="one of ours; may be repeated")
    parser.add_argument(
        "--url",
        action="append",
        default=[],
        metavar="NAME=URL,MODEL",
        help=f"anything behind the OpenAI chat API, its key in {CONTESTANT_KEY}; may be repeated",
    )
    parser.add_argument("--grid", default="", metavar="GRID.toml", help="every combination of these settings answers")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for answers, judgements and the report")
    parser.add_argument("--limit", type=positive, metavar="N", help="only N questions, the same ones each time")
    parser.add_argument("--parallel", type=positive, default=4, metavar="N", help="calls at once (default 4)")
    parser.add_argument("--evidently", action="store_true", help="Evidently's own report too (needs the extra eval)")
    add_judge_options(parser)


def add_judge_options(parser: argparse.ArgumentParser) -> None:
    """Which model judges and how fast it may be asked."""
    parser.add_argument(
        "--judge-url", default="", metavar="URL", help=f"OpenAI-compatible judge; its key is read from {KEY}"
    )
    parser.add_argument("--judge-model", default="", metavar="NAME", help="another model than the one that answers")
    parser.add_argument("--judge-per-minute", type=int, default=0, metavar="N", help="calls a minute (0: no limit)")
    parser.add_argument(
        "--judge-timeout", type=float, default=60.0, metavar="S", help="seconds for one call (default 60)"
    )
    parser.add_argument("--own-criteria", action="store_true", help="our wording also where Evidently's is installed")


async def _run(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    refuse_judge(options, settings)
    questions = load_questions(options.file, options.unanswerable)
    cases = sample(questions, options.limit or len(questions))
    folder = prepared(options.out)
    async with opened(settings) as assistants:
        answers = await all_answers(options, settings, assistants, cases)
        result = await measured(options, settings, assistants, cases, answers)
    result.save(folder / "answers.json")
    write_page(answers_page(result), folder / "answers.html")
    if options.evidently:
        evidently_page(result, folder / "evidently.html")
    sys.stdout.write(answers_text(result) + "\n")
    return FAILED if result.failed or result.malformed else OK


async def measured(
    options: argparse.Namespace,
    settings: Settings,
    assistants: Assistants,
    cases: Sequence[Case],
    answers: Sequence[Answer],
) -> AnswerResult:
    """The answers with their measures, judged where a judge is named."""
    by_id = {case.id: case for case in cases}
    judgements = await _judged(options, by_id, answers)
    detector = LanguageDetector(assistants.prompts.languages, settings.default_language)
    scorer = Scorer(assistants.prompts, detector, assistants.embedder)
    wanted = criteria(evidently=False if options.own_criteria else None)
    config = {
        **configuration(options.file, settings, {}, settings.llm_model),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "judge": options.judge_model,
        "criteria": {name: one.origin for name, one in wanted.items()} if options.judge_model else {},
    }
    return AnswerResult(await scorer.score(answers, by_id, judgements), config)


async def _judged(
    options: argparse.Namespace, cases: Mapping[str, Case], answers: Sequence[Answer]
) -> Sequence[Judgement]:
    if not options.judge_url:
        return ()
    wanted = criteria(evidently=False if options.own_criteria else None)
    async with judging(options, Path(options.out)) as judge:
        with progress_bar("Judging") as progress:
            return await judge.judge(tasks(answers, cases, wanted), progress)


@asynccontextmanager
async def judging(options: argparse.Namespace, folder: Path) -> AsyncIterator[Judge]:
    """The judge that the options name, with what it said before."""
    model = OpenAIModel(
        Endpoint(options.judge_url, os.environ.get(KEY, ""), timeout=options.judge_timeout), options.judge_model
    )
    pace = Pace(options.parallel, options.judge_per_minute, options.judge_timeout)
    with Cache(folder / "judgements.jsonl") as cache:
        try:
            yield Judge(model, cache, pace)
        finally:
            await model.close()


def refuse_judge(options: argparse.Namespace, settings: Settings) -> None:
    """A judge is named whole, and doesn't judge its own answers."""
    if bool(options.judge_url) != bool(options.judge_model):
        raise EvaluationError("--judge-url and --judge-model go together.")
    if options.judge_model and options.judge_model == settings.llm_model:
        raise EvaluationError(f"{options.judge_model} answers, so it can't judge: models prefer their own answers.")


def prepared(directory: str) -> Path:
    """The directory, made where it isn't there."""
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvaluationError(f"--out {directory} can't be made: {error}") from error
    return folder
