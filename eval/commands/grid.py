"""`eval grid FILE`: measures one question set with many settings, steps, prompts, models or fusion weights."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from app.assistants.assembly import opened
from app.assistants.file import read_assistants
from app.core.settings import Settings
from app.pipeline.registry import Tools
from app.text.language import LanguageDetector
from eval.answers.result import answers_text
from eval.commands.answers import all_answers, check_judge, measured, write_answers
from eval.commands.options import (
    FAILED,
    JUDGE,
    OK,
    OUTPUT,
    Options,
    argument,
    check_writable,
    command,
    configuration,
    finish,
    flag,
    number,
    output_folder,
    progress_bar,
    quiet_pipeline,
    report_reindexing,
)
from eval.files import EvaluationError
from eval.grid.configurations import (
    Configuration,
    chosen_assistant,
    indexed,
    load_grid,
    step_configurations,
    variants,
    with_steps,
    write_assistants,
)
from eval.grid.cross_validation import PLAIN, Table, cross_validate, fusion_settings, reciprocal_ranks, search, table_of
from eval.grid.result import GridResult, Measured, grid_text, retrieval_of, validation_text
from eval.measure.retrieval import Plan, evaluate
from eval.questions.cases import Case, half, load_cases, load_unanswerable, sample
from eval.questions.documents import Documents
from eval.reports import grid_page

FOLDS = 5
ANSWERS_ONLY = ("unanswerable", "url", "judge_url", "judge_model", "evidently")


@command(
    f"file --limit --k --assistant --doc-map --no-model {OUTPUT} --unanswerable --url {JUDGE} --evidently --half",
    number("--parallel", None, "questions asked at once (default 4, or 1 with --answers)"),
    argument("grid", "[axes] with a list of values for each setting", "GRID.toml", default=""),
    flag("--steps", "add or remove each optional step, one at a time"),
    flag("--weights", "154 weights of the fusion, by cross-validation"),
    number(
        "--folds",
        0,
        f"choose the best on N-1 parts of the questions, judge it on the other part ({FOLDS} with --weights)",
        least=0,
    ),
    flag("--answers", "write whole answers; --out is a directory then"),
)
async def grid(options: Options, settings: Settings) -> int:
    """Measures many configurations in one run.

    Measures every combination of a TOML file, or the assistant with and without each optional step (--steps), or the weights
    of the fusion (--weights). For settings that change the index (chunk size, embedder), the indexed pages are indexed again.
    """
    _check_options(options, settings)
    # with one answer at a time, milliseconds are those of an answer
    options.parallel = options.parallel or (1 if options.answers else 4)
    answerable = load_cases(options.file)
    answerable = half(answerable, options.half) if options.half else answerable
    cases = (*answerable, *(load_unanswerable(options.unanswerable) if options.unanswerable else ()))
    cases = sample(cases, options.limit or len(cases))
    settings = settings.model_copy(update=options.overrides)
    if options.weights:
        return await _weights(options, cases)
    with tempfile.TemporaryDirectory(prefix="docs-assistant-eval-") as scratch:
        folder = output_folder(options) if options.answers else Path(scratch)
        configurations = await _configurations(options, settings, folder / "assistants.toml")
        measure = _answers if options.answers else _retrieval
        result = GridResult(tuple(await measure(options, settings, configurations, cases)))
    if options.folds:
        result = replace(result, validation=cross_validate(result.table(), options.folds))
    if options.answers:
        options.out, options.html = str(folder / "grid.json"), options.html or str(folder / "grid.html")
    finish(options, result.summary(), text=lambda: grid_text(result), html=lambda: grid_page(result))
    return FAILED if result.failed else OK


def _check_options(options: Options, settings: Settings) -> None:
    if sum((bool(options.grid), options.steps, options.weights)) != 1:
        raise EvaluationError("Give exactly one of GRID.toml, --steps and --weights.")
    if options.folds < 0 or options.folds == 1:
        raise EvaluationError(f"--folds {options.folds}: at least 2 are needed.")
    only_with_answers = [name for name in ANSWERS_ONLY if getattr(options, name)]
    if only_with_answers and not options.answers:
        raise EvaluationError(f"--{only_with_answers[0].replace('_', '-')} needs --answers.")
    if options.answers and not options.out:
        raise EvaluationError("--answers needs --out DIR: answers are saved there.")
    if options.weights and (options.answers or options.html):
        raise EvaluationError("--weights only searches: it excludes --answers and --html.")
    check_judge(options, settings)
    check_writable(options, *(("html",) if options.answers else ("out", "html")))


async def _configurations(options: Options, settings: Settings, assistants: Path) -> Sequence[Configuration]:
    """The requested configurations; writes the file `assistants` if their steps differ."""
    listed = load_grid(options.grid) if options.grid else ()
    if options.steps or any(combination.steps for combination in listed):
        file = read_assistants(settings)
        entry = chosen_assistant(file, options.assistant)
        async with opened(settings) as own:
            detector = LanguageDetector(own.prompts.languages, settings.default_language)
            tools = Tools(settings, own.prompts, detector, own.model, own.embedder, own.reranker)
        steps = variants(entry.steps, tools, file.known_steps())
        write_assistants(file, entry, [step for step in steps if not step.needs], assistants)
        listed = with_steps(listed or step_configurations(steps), steps, assistants)
    listed = tuple(
        replace(
            combination,
            settings={**combination.settings, **options.overrides},
            assistant=combination.assistant or options.assistant,
        )
        for combination in listed
    )
    for combination in listed:
        if options.judge_model and options.judge_model == Settings.load(**combination.settings).llm_model:
            raise EvaluationError(f"{options.judge_model} answers in {combination.name!r}, so it can't judge.")
    return listed


async def _retrieval(
    options: Options, settings: Settings, configurations: Sequence[Configuration], cases: Sequence[Case]
) -> list[Measured]:
    """Retrieval with each configuration, on a separate index if it needs one."""
    for combination in configurations:
        if (top_k := Settings.load(**combination.settings).top_k) < options.k:
            raise EvaluationError(
                f"{combination.name}: {top_k} passages can't hold {options.k} pages. Set a larger top_k, or --k."
            )
    rows = []
    with quiet_pipeline():
        async with indexed(settings, configurations, report_reindexing) as all_of:
            for combination, overrides in all_of:
                if combination.needs:
                    rows.append(Measured(combination, None))
                    continue
                plan = Plan(options.k, options.parallel, combination.assistant, options.rules)
                config = configuration(options.file, settings, overrides, Settings.load(**overrides).llm_model)
                with progress_bar(combination.name) as progress:
                    async with options.open_finder(overrides) as finder:
                        result = await evaluate(finder, cases, plan, config=config, progress=progress)
                rows.append(Measured(combination, result))
    return rows


async def _answers(
    options: Options, settings: Settings, configurations: Sequence[Configuration], cases: Sequence[Case]
) -> list[Measured]:
    """Whole answers with each configuration and of every other contestant, whose measures are written to --out."""
    async with opened(settings) as assistants:
        asked = [combination for combination in configurations if not combination.needs]
        answers = await all_answers(options, settings, asked, cases)
        result = await measured(options, settings, assistants, cases, answers)
    write_answers(result, options)
    sys.stdout.write(answers_text(result) + "\n\n")
    documents = Documents((), options.rules)
    rows = []
    for combination in configurations:
        own = tuple(scored for scored in result.scored if scored.answer.contestant == combination.name)
        rows.append(Measured(combination, retrieval_of(own, documents, options.k, result.config) if own else None, own))
    return rows


async def _weights(options: Options, cases: Sequence[Case]) -> int:
    """The best weights for each question language. Each question is searched once; hundreds of weights are computed from it."""
    with quiet_pipeline(), progress_bar("Searching") as progress:
        async with options.open_finder(options.overrides) as finder:
            searched = await search(finder, cases, options.assistant, progress)
    tried, documents = fusion_settings(), Documents((), options.rules)
    with progress_bar("Fusing") as progress:
        values = table_of(searched, tried, documents, options.k, progress)
    baselines = {
        "the settings in force": reciprocal_ranks(searched, documents, options.k),
        "plain fusion (rrf, no preference for a language)": reciprocal_ranks(searched, documents, options.k, PLAIN),
    }
    table = Table(tried, cases, [question.query.language for question in searched], values, baselines)
    validation = cross_validate(table, options.folds or FOLDS)
    summary = {"cross_validation": asdict(validation)}
    finish(options, summary, text=lambda: validation_text(validation, options.k))
    return OK
