"""`eval grid FILE`: measures one question set with many settings, steps, prompts, models or fusion weights."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.assistants.assembly import opened
from app.assistants.file import read_assistants
from app.core.settings import Settings
from app.models.protocols import Model
from app.pipeline.registry import Tools
from app.text.language import LanguageDetector
from eval.answers.report import answers_text
from eval.commands.answering import all_answers
from eval.commands.judged import check_judge, measured, write_answers
from eval.commands.models import model_from_files, report_missing
from eval.commands.options import (
    FAILED,
    JUDGE,
    MODEL,
    NO_MODEL,
    OK,
    OUTPUT,
    Commands,
    OpenFinder,
    check_writable,
    finish,
    new_command,
    output_folder,
)
from eval.commands.progress import progress_bar, quiet_pipeline, report_reindexing
from eval.commands.provenance import configuration as provenance
from eval.errors import EvaluationError
from eval.grid.configurations import Configuration, indexed, load_grid, step_configurations, with_steps
from eval.grid.cross_validation import Table, cross_validate
from eval.grid.result import GridResult, Measured, retrieval_of
from eval.grid.steps import chosen_assistant, variants, write_assistants
from eval.grid.text import grid_text, validation_text
from eval.grid.weights import PLAIN, fusion_settings, reciprocal_ranks, search, table_of
from eval.measure.retrieval import Plan, evaluate
from eval.questions.cases import HALVES, Case, half, load_cases, load_unanswerable, sample
from eval.questions.documents import Documents, parse_rules
from eval.reports import grid_page

FOLDS = 5
ANSWERS = ("--unanswerable", "--url")
ANSWERS_ONLY = ("unanswerable", "url", "judge_url", "judge_model", "evidently")


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "grid",
        _grid,
        (
            "file",
            "--limit",
            "--k",
            "--parallel",
            "--assistant",
            "--doc-map",
            *MODEL,
            *OUTPUT,
            *ANSWERS,
            *JUDGE,
            "--evidently",
        ),
        help="measure many configurations in one run",
        description="Measures every combination of a TOML file, or the assistant with and without each optional step"
        " (--steps), or the weights of the fusion (--weights). For settings that change the index (chunk size,"
        " embedder), the indexed pages are indexed again.",
    )
    parser.set_defaults(parallel=None)
    parser.add_argument(
        "grid", metavar="GRID.toml", nargs="?", default="", help="[axes] with a list of values for each setting"
    )
    parser.add_argument("--steps", action="store_true", help="add or remove each optional step, one at a time")
    parser.add_argument("--weights", action="store_true", help="154 weights of the fusion, by cross-validation")
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        metavar="N",
        help=f"choose the best on N-1 parts of the questions, judge it on the other part ({FOLDS} with --weights)",
    )
    parser.add_argument("--half", choices=HALVES, default="", help="only every second question, counted from 0")
    parser.add_argument("--answers", action="store_true", help="write whole answers; --out is a directory then")


@dataclass(frozen=True)
class _Run:
    """The arguments of a run, and what it asks with."""

    options: argparse.Namespace
    settings: Settings
    open_finder: OpenFinder
    cases: Sequence[Case]
    model: Model | None

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Settings that all configurations have."""
        return NO_MODEL if self.options.no_model else {}


async def _grid(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    _check_options(options, settings)
    # with one answer at a time, milliseconds are those of an answer
    options.parallel = options.parallel or (1 if options.answers else 4)
    model, known = model_from_files(options, settings, load_cases(options.file))
    known = half(known, options.half) if options.half else known
    everything = (*known, *(load_unanswerable(options.unanswerable) if options.unanswerable else ()))
    cases = sample(everything, options.limit or len(everything))
    settings = settings.model_copy(update=NO_MODEL) if options.no_model else settings
    run = _Run(options, settings, open_finder, cases, model)
    if options.weights:
        return await _weights(run)
    with tempfile.TemporaryDirectory(prefix="docs-assistant-eval-") as scratch:
        folder = output_folder(options) if options.answers else Path(scratch)
        configurations = await _configurations(run, folder / "assistants.toml")
        found = await (_answers(run, configurations) if options.answers else _retrieval(run, configurations))
    result = GridResult(tuple(found))
    if options.folds:
        result = replace(result, validation=cross_validate(result.table(), options.folds))
    report_missing(options, model, len(cases))
    if options.answers:
        options.out, options.html = str(folder / "grid.json"), options.html or str(folder / "grid.html")
    finish(options, result.summary(), text=lambda: grid_text(result), html=lambda: grid_page(result))
    return FAILED if result.failed else OK


def _check_options(options: argparse.Namespace, settings: Settings) -> None:
    if sum((bool(options.grid), options.steps, options.weights)) != 1:
        raise EvaluationError("Give exactly one of GRID.toml, --steps and --weights.")
    if options.folds < 0 or options.folds == 1:
        raise EvaluationError(f"--folds {options.folds}: at least 2 are needed.")
    given = [name for name in ANSWERS_ONLY if getattr(options, name)]
    if given and not options.answers:
        raise EvaluationError(f"--{given[0].replace('_', '-')} needs --answers.")
    if options.answers and not options.out:
        raise EvaluationError("--answers needs --out DIR: answers are saved there.")
    if options.weights and (options.answers or options.html):
        raise EvaluationError("--weights only searches: it excludes --answers and --html.")
    check_judge(options, settings)
    check_writable(options, *(("html",) if options.answers else ("out", "html")))


async def _configurations(run: _Run, assistants: Path) -> Sequence[Configuration]:
    """The requested configurations; writes the file `assistants` if their steps differ."""
    options = run.options
    found = load_grid(options.grid) if options.grid else ()
    if options.steps or any(one.steps for one in found):
        file = read_assistants(run.settings)
        entry = chosen_assistant(file, options.assistant)
        async with opened(run.settings, model=run.model) as own:
            detector = LanguageDetector(own.prompts.languages, run.settings.default_language)
            tools = Tools(run.settings, own.prompts, detector, own.model, own.embedder, own.reranker)
        steps = variants(entry.steps, tools, file.known_steps(installed=True))
        write_assistants(file, entry, [one for one in steps if not one.needs], assistants)
        found = with_steps(found or step_configurations(steps), steps, assistants)
    found = tuple(
        replace(one, settings={**one.settings, **run.overrides}, assistant=one.assistant or options.assistant)
        for one in found
    )
    for one in found:
        if options.judge_model and options.judge_model == Settings.load(**one.settings).llm_model:
            raise EvaluationError(f"{options.judge_model} answers in {one.name!r}, so it can't judge.")
    return found


async def _retrieval(run: _Run, configurations: Sequence[Configuration]) -> list[Measured]:
    """Retrieval with each configuration, on a separate index if it needs one."""
    options = run.options
    for one in configurations:
        top_k = Settings.load(**one.settings).top_k
        if top_k < options.k:
            raise EvaluationError(
                f"{one.name}: {top_k} passages can't hold {options.k} pages. Set a larger top_k, or --k."
            )
    found = []
    with quiet_pipeline():
        async with indexed(run.settings, configurations, report_reindexing) as all_of:
            for one, overrides in all_of:
                if one.needs:
                    found.append(Measured(one, None))
                    continue
                plan = Plan(options.k, options.parallel, one.assistant, parse_rules(options.doc_map))
                llm = run.model.name if run.model else Settings.load(**overrides).llm_model
                config = provenance(options.file, run.settings, overrides, llm)
                with progress_bar(one.name) as progress:
                    async with run.open_finder(overrides, run.model) as finder:
                        result = await evaluate(finder, run.cases, plan, config=config, progress=progress)
                found.append(Measured(one, result))
    return found


async def _answers(run: _Run, configurations: Sequence[Configuration]) -> list[Measured]:
    """Whole answers with each configuration and of every other contestant; writes their measures to the directory of
    --out.
    """
    options, settings = run.options, run.settings
    async with opened(settings, model=run.model) as assistants:
        wanted = [one for one in configurations if not one.needs]
        answers = await all_answers(options, settings, wanted, run.cases, run.model)
        result = await measured(options, settings, assistants, run.cases, answers, run.model)
    write_answers(result, options)
    sys.stdout.write(answers_text(result) + "\n\n")
    documents = Documents((), parse_rules(options.doc_map))
    found = []
    for one in configurations:
        own = tuple(scored for scored in result.scored if scored.answer.contestant == one.name)
        found.append(Measured(one, retrieval_of(own, documents, options.k, result.config) if own else None, own))
    return found


async def _weights(run: _Run) -> int:
    """The best weights for each question language. Each question is searched once; hundreds of weights are computed
    from that.
    """
    options, tried = run.options, fusion_settings()
    with quiet_pipeline(), progress_bar("Searching") as progress:
        async with run.open_finder(run.overrides, run.model) as finder:
            searched = await search(finder, run.cases, options.assistant, progress)
    documents = Documents((), parse_rules(options.doc_map))
    with progress_bar("Fusing") as progress:
        values = table_of(searched, tried, documents, options.k, progress)
    baselines = {
        "the settings in force": reciprocal_ranks(searched, documents, options.k),
        "plain fusion (rrf, no preference for a language)": reciprocal_ranks(searched, documents, options.k, PLAIN),
    }
    languages = [one.query.language for one in searched]
    table = Table(tried, run.cases, languages, values, baselines)
    found = cross_validate(table, options.folds or FOLDS)
    finish(options, {"cross_validation": asdict(found)}, text=lambda: validation_text(found, options.k))
    return OK
