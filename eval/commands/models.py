"""The language model of a run: the configured one, none, or one whose answers come from files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.models.protocols import Model
from eval.errors import EvaluationError
from eval.files import write_text
from eval.questions.cases import Case
from eval.scripted import RecordedModel, ScriptedModel, load_record, load_script, missing_lines


def model_from_files(
    options: argparse.Namespace, settings: Settings, cases: Sequence[Case]
) -> tuple[Model | None, tuple[Case, ...]]:
    """The model of --scripted-model and --recorded-model (None without them), and the cases to ask: with --known-only,
    those that the script knows. `cases` is the set that the script belongs to.

    Raises `EvaluationError` for options that contradict each other and for wrong files.
    """
    if options.no_model and (options.scripted_model or options.recorded_model):
        raise EvaluationError("--no-model excludes --scripted-model and --recorded-model.")
    if options.missing and not options.recorded_model:
        raise EvaluationError("--missing needs --recorded-model FILE.")
    if options.known_only and not options.scripted_model:
        raise EvaluationError("--known-only needs --scripted-model FILE.")
    model: Model | None = None
    if options.scripted_model:
        script = load_script(options.scripted_model, cases)
        shipped = load_prompts(settings.languages)
        model = ScriptedModel(script, load_prompts(settings.languages, settings.prompts), shipped)
        if options.known_only:
            cases = [case for case in cases if script.find(case.question)]
    if options.recorded_model:
        model = RecordedModel(load_record(options.recorded_model), model)
    return model, tuple(cases)


def model_name(options: argparse.Namespace, settings: Settings, model: Model | None) -> str:
    """The name of the language model that is asked, empty without one."""
    if model or options.no_model:
        return model.name if model else ""
    return settings.llm_model or settings.llm_class if settings.llm_url or settings.llm_class else ""


def report_missing(options: argparse.Namespace, model: Model | None, asked: int) -> None:
    """Print what a model from files could not answer of `asked` questions, and write it to the file of --missing."""
    if isinstance(model, RecordedModel) and model.missing:
        where = f", see {options.missing}" if options.missing else "; --missing FILE writes them"
        sys.stderr.write(f"{len(model.missing)} prompts have no recorded answer{where}.\n")
        if options.missing:
            write_text(missing_lines(model), options.missing)
    script = model.otherwise if isinstance(model, RecordedModel) else model
    if isinstance(script, ScriptedModel):
        sys.stderr.write(f"The scripted model didn't know {len(script.unknown)} of {asked} questions.\n")
