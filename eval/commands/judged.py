"""Measures answers, with a judge if one is configured; `eval run`, `eval grid --answers` and `eval label` use it."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from app.assistants.assistant import Assistants
from app.core.settings import Settings
from app.models.openai import Endpoint, OpenAIModel
from app.models.protocols import Model
from app.text.language import LanguageDetector
from eval.answers.evidently_report import evidently_page
from eval.answers.result import AnswerResult
from eval.answers.score import Scorer, tasks
from eval.answers.types import Answer
from eval.commands.answering import saved_rows
from eval.commands.models import model_name
from eval.commands.options import JUDGE_KEY
from eval.commands.progress import progress_bar
from eval.commands.provenance import configuration
from eval.errors import EvaluationError
from eval.files import write_text
from eval.judge import Judge, Judgement, Pace, criteria
from eval.questions.cases import Case
from eval.questions.documents import parse_rules
from eval.reports import answers_page


def check_judge(options: argparse.Namespace, settings: Settings) -> None:
    """Raises `EvaluationError` if only a part of the judge is configured, or if it would judge its own answers."""
    if bool(options.judge_url) != bool(options.judge_model):
        raise EvaluationError("--judge-url and --judge-model need each other.")
    if options.judge_model and options.judge_model == settings.llm_model:
        raise EvaluationError(f"{options.judge_model} answers, so it can't judge: models prefer their own answers.")


@asynccontextmanager
async def judging(options: argparse.Namespace) -> AsyncIterator[Judge]:
    """The judge of the options, with its earlier judgements."""
    endpoint = Endpoint(options.judge_url, os.environ.get(JUDGE_KEY, ""), timeout=options.judge_timeout)
    model = OpenAIModel(endpoint, options.judge_model)
    pace = Pace(options.parallel, options.judge_per_minute, options.judge_timeout)
    with saved_rows(options, "judgements.jsonl") as cache:
        try:
            yield Judge(model, cache, pace)
        finally:
            await model.close()


async def measured(
    options: argparse.Namespace,
    settings: Settings,
    assistants: Assistants,
    cases: Sequence[Case],
    answers: Sequence[Answer],
    model: Model | None = None,
) -> AnswerResult:
    """The answers with their measures, judged if a judge is configured."""
    by_id = {case.id: case for case in cases}
    judgements = await _judged(options, by_id, answers)
    detector = LanguageDetector(assistants.prompts.languages, settings.default_language)
    scorer = Scorer(assistants.prompts, detector, assistants.embedder)
    wanted = criteria(evidently=False if options.own_criteria else None)
    config = {
        **configuration(options.file, settings, {}, model_name(options, settings, model)),
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
    async with judging(options) as judge:
        with progress_bar("Judging") as progress:
            return await judge.judge(tasks(answers, cases, wanted), progress)


def write_answers(result: AnswerResult, options: argparse.Namespace) -> None:
    """Write answers.json and answers.html to the directory of --out, and Evidently's page with --evidently."""
    folder = Path(options.out)
    result.save(folder / "answers.json")
    write_text(answers_page(result, parse_rules(options.doc_map)), folder / "answers.html")
    if options.evidently:
        evidently_page(result, folder / "evidently.html")
