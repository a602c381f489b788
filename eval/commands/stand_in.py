"""The language model that a file stands in for, in the commands that can be told to use one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from app.core.models.base import Model
from app.core.prompts import load_prompts
from app.core.settings import Settings
from eval.commands.types import write_text
from eval.errors import EvaluationError
from eval.questions.cases import Case
from eval.scripted import RecordedModel, ScriptedModel, load_record, load_script, missing_lines


def add_stand_in_options(parser: argparse.ArgumentParser) -> None:
    """A scripted model, a recorded one, or both."""
    parser.add_argument(
        "--scripted-model", metavar="FILE", help="a language model that says what this file has for each question"
    )
    parser.add_argument(
        "--recorded-model",
        metavar="FILE",
        help="a language model that repeats what this file has for exactly these messages, .jsonl: key, text; what isn't"
        " there is asked of the scripted one",
    )
    parser.add_argument(
        "--missing", default="", metavar="FILE", help="write what neither had an answer to, to be answered and recorded"
    )


def add_known_option(parser: argparse.ArgumentParser) -> None:
    """Where questions that the script lacks would only blur what is measured."""
    parser.add_argument("--known-only", action="store_true", help="only questions that the scripted model knows")


def stand_in(
    options: argparse.Namespace, settings: Settings, cases: Sequence[Case]
) -> tuple[Model | None, tuple[Case, ...]]:
    """The model that was named instead of the configured one, and the cases to ask: with --known-only those that its
    script has. `cases` are those that the script was written for.

    Raises `EvaluationError` for options that contradict each other and for wrong files.
    """
    if options.no_model and (options.scripted_model or options.recorded_model):
        raise EvaluationError("--no-model excludes --scripted-model and --recorded-model.")
    if options.missing and not options.recorded_model:
        raise EvaluationError("--missing goes with --recorded-model FILE.")
    if options.known_only and not options.scripted_model:
        raise EvaluationError("--known-only goes with --scripted-model FILE.")
    model: Model | None = None
    if options.scripted_model:
        script = load_script(options.scripted_model, cases)
        model = ScriptedModel(script, load_prompts(settings.languages, settings.prompts))
        if options.known_only:
            cases = [case for case in cases if script.find(case.question)]
    if options.recorded_model:
        model = RecordedModel(load_record(options.recorded_model), model)
    return model, tuple(cases)


def tell_missing(options: argparse.Namespace, model: Model | None, asked: int) -> None:
    """Say what the stand-in had no answer to, of `asked` questions, and keep it where --missing names a file."""
    if isinstance(model, RecordedModel) and model.missing:
        where = f", see {options.missing}" if options.missing else "; --missing FILE writes them"
        sys.stderr.write(f"{len(model.missing)} prompts have no recorded answer{where}.\n")
        if options.missing:
            write_text(missing_lines(model), options.missing)
    script = model.otherwise if isinstance(model, RecordedModel) else model
    if isinstance(script, ScriptedModel):
        sys.stderr.write(f"The scripted model didn't know {len(script.unknown)} of {asked} questions.\n")
