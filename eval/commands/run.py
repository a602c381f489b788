"""`eval run FILE`: contestants answer a question set, and their answers are measured, with or without a judge."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.prompt_files import own_files
from app.core.settings import Settings
from app.models.protocols import Model
from eval.answers.report import answers_text
from eval.answers.result import AnswerResult
from eval.answers.sources import Corpus, citing
from eval.answers.types import Answer
from eval.commands.against import FORMS, Against, against
from eval.commands.answering import all_answers
from eval.commands.judged import check_judge, measured, write_answers
from eval.commands.models import model_from_files, report_missing
from eval.commands.options import FAILED, JUDGE, MODEL, NO_MODEL, OK, Commands, OpenFinder, new_command, output_folder
from eval.commands.progress import progress_bar, quiet_pipeline
from eval.commands.verdicts import drops, drops_text
from eval.errors import EvaluationError
from eval.grid.configurations import Configuration
from eval.questions.cases import Case, load_questions, sample
from eval.questions.documents import parse_rules


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "run",
        _run,
        (
            "file",
            "--limit",
            "--unanswerable",
            "--url",
            "--doc-map",
            "--parallel",
            "--max-drop",
            *MODEL,
            *JUDGE,
            "--evidently",
        ),
        help="let contestants answer a question set and measure the answers",
        description="Saves everything in the directory of --out immediately. The same command continues a stopped run."
        " With --against, the exit code is 1 if something dropped.",
    )
    parser.add_argument("--assistant", action="append", default=[], metavar="ID", help="one of ours; may be repeated")
    parser.add_argument("--prompts", default="", metavar="DIR", help="directory of prompts, instead of DOCS_PROMPTS")
    parser.add_argument("--against", default="", metavar="WHAT", help=f"compare with {FORMS}")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for answers, judgements and the report")


@dataclass(frozen=True)
class _Run:
    """What is asked and with what; `base` are the settings without --prompts."""

    options: argparse.Namespace
    settings: Settings
    base: Settings
    cases: Sequence[Case]
    model: Model | None

    async def result(self) -> AnswerResult:
        """The measured answers of all contestants."""
        options, settings = self.options, self.settings
        rules = parse_rules(options.doc_map)
        async with opened(settings, model=self.model) as assistants:
            own = self._own(assistants)
            other = (
                against(options.against, own[0], self.base, assistants, self.cases) if options.against else Against("")
            )
            # without an index, nobody is asked in vain
            first = assistants.get(own[0].assistant if own else "")
            corpus = await Corpus.of(first, settings.passage_tokens, rules)
            output_folder(options)
            asked = [*own, *([other.configuration] if other.configuration else [])]
            answers = [*await all_answers(options, settings, asked, self.cases, self.model), *other.saved]
            sourced = await _sourced(corpus, answers, self.cases)
            result = await measured(options, settings, assistants, self.cases, sourced, self.model)
        ours = {*(one.name for one in asked), other.name}
        more: dict[str, Any] = {
            "cite indexed pages": citing([answer for answer in sourced if answer.contestant not in ours])
        }
        more |= {"against": other.name, "note": other.note} if options.against else {}
        return replace(result, config={**result.config, **more})

    def _own(self, assistants: Assistants) -> list[Configuration]:
        """The assistants that are asked. Raises `EvaluationError` if --against has none of them to compare."""
        options = self.options
        named = options.assistant or ([] if options.url and not options.against else [""])
        ids = [(assistants.get(name).id, name) for name in named]
        if options.against and len(ids) > 1:
            raise EvaluationError("--against compares one assistant: give --assistant once.")
        prompts = {"prompts": options.prompts} if options.prompts else {}
        return [Configuration(_name(id_, options.prompts, len(ids)), prompts, id_) for id_, _ in ids]


async def _run(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    check_judge(options, settings)
    _check_prompts(options)
    # an answer without the model, because that was down, would count as an answer of the assistant
    base = settings.model_copy(update={"on_model_failure": "error", **(NO_MODEL if options.no_model else {})})
    own = base.model_copy(update={"prompts": options.prompts}) if options.prompts else base
    questions = load_questions(options.file, options.unanswerable)
    model, known = model_from_files(options, own, questions)
    run = _Run(options, own, base, sample(known, options.limit or len(known)), model)
    result = await run.result()
    write_answers(result, options)
    report_missing(options, model, len(run.cases))
    dropped = [one for comparison in result.comparisons for one in drops(comparison, options.max_drop)]
    sys.stdout.write(answers_text(result) + "\n")
    if options.against:
        sys.stdout.write(drops_text(dropped, options.max_drop) + "\n")
    sys.stdout.write(f"The answers side by side: {Path(options.out, 'answers.html')}\n")
    return FAILED if result.failed or result.malformed or (options.against and dropped) else OK


def _check_prompts(options: argparse.Namespace) -> None:
    if options.prompts and not own_files(options.prompts):
        raise EvaluationError(f"--prompts {options.prompts}: it has no prompts, such as en/synthesize.md.")


def _name(assistant: str, prompts: str, number: int) -> str:
    """The name in tables: what differs."""
    return assistant if not prompts else prompts if number == 1 else f"{assistant} with {prompts}"


async def _sourced(corpus: Corpus, answers: Sequence[Answer], cases: Sequence[Case]) -> list[Answer]:
    """The answers with what they are judged against: a refusal of ours as well, or it would be missing among the judged."""
    by_id, found = {case.id: case for case in cases}, list[Answer]()
    with quiet_pipeline(), progress_bar("Finding sources") as progress:
        for answer in answers:
            found.append(await corpus.sourced(answer, by_id[answer.case]))
            progress(len(found), len(answers))
    return found
