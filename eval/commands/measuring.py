"""`eval retrieval`, `docs`, `conversations` and `refusals` measure what is found and refused, before any answer; `compare`, `gate` and
`faults` say whether something became worse, in words and as an exit code.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.assistants.assembly import opened
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.models import open_embedder
from eval.answers.score import side_by_side
from eval.commands.options import (
    FAILED,
    NO_MODEL,
    OK,
    OUTPUT,
    Options,
    argument,
    check_writable,
    command,
    configuration,
    finish,
    flag,
    keep,
    model_name,
    option,
    progress_bar,
    quiet_pipeline,
    saved_file,
)
from eval.files import EvaluationError, write_json_lines, write_text
from eval.measure.conversations import asked_second, failures, figures
from eval.measure.faults import Kept, Meaning, measure
from eval.measure.gate import drops, judge, save_baseline
from eval.measure.refusals import Refusals, decide
from eval.measure.result import ANSWERS, REFUSALS, RETRIEVAL, Result, load_result
from eval.measure.result import compare as compare_results
from eval.measure.retrieval import DEPTH, Finder, Plan, curve, evaluate, follow_ups, quotations
from eval.measure.tables import comparison_text, drops_text, refusals_text, result_text, verdict_line
from eval.questions.cases import Case, load_cases, load_unanswerable, sample
from eval.questions.labels import load_labels, relevant_chunks
from eval.questions.own_docs import ANSWERABLE, IN_CONVERSATION, UNANSWERABLE, indexed_docs, own_set
from eval.reports.pages import answers_page, refusals_page, retrieval_page

WITHOUT_MODEL: Mapping[str, Any] = {**NO_MODEL, "summaries": False, "questions": False}
MEASURE = (
    flag("--deep", "measure pages and chunks at k = 1, 3, 5, 10, 15 and 20 too"),
    option("--against", "a saved result that the page compares with", "FILE"),
)


@command(
    f"file --limit --assistant --doc-map --no-model --keep --k --parallel {OUTPUT}",
    *MEASURE,
    option("--labels", "labels of relevance that say which chunks are right, .jsonl or .csv", "FILE"),
)
async def retrieval(options: Options, settings: Settings) -> int:
    """Measures on a question set whether the right pages are found."""
    before = _checked(options)
    cases = load_cases(options.file)
    cases = sample(cases, options.limit or len(cases))
    result = await _searched(options, settings, cases, evaluate)
    if options.keep:
        keep(settings, result)
    return _finished(options, result, before)


async def _searched(
    options: Options, settings: Settings, cases: Sequence[Case], measure: Callable[..., Awaitable[Result]]
) -> Result:
    plan, overrides = plan_of(options, settings)
    config = configuration(options.file, settings, overrides, model_name(options, settings))
    if labels := getattr(options, "labels", ""):
        config["labels"] = Path(labels).name
    with quiet_pipeline(), progress_bar("Asking") as progress:
        async with options.open_finder(overrides) as finder:
            return await measure(finder, cases, plan, config=config, progress=progress)


def plan_of(options: Options, settings: Settings) -> tuple[Plan, dict[str, Any]]:
    """The plan, and the settings with which the assistant finds enough passages for it, without a model if that is wanted."""
    passages = max(settings.top_k, options.k)  # k pages can't come from fewer than k passages
    deep = getattr(options, "deep", False)
    asked = max(passages, DEPTH) if deep else passages
    assistant = getattr(options, "assistant", "")
    labels = getattr(options, "labels", "")
    labelled = relevant_chunks(load_labels(labels)) if labels else None
    plan = Plan(options.k, options.parallel, assistant, options.rules, passages if deep else 0, labelled)
    return plan, {**options.overrides, **({"top_k": asked} if asked != settings.top_k else {})}


def _checked(options: Options) -> Result | None:
    """The result of --against. Raises `EvaluationError` before a run, for files that can't be written or read at its end."""
    check_writable(options)
    return load_result(options.against) if options.against else None


def _finished(options: Options, result: Result, before: Result | None = None) -> int:
    points = [asdict(point) for point in curve(result)]
    return finish(options, result, result_text(result), lambda: retrieval_page(result, before), curve=points)


@command(
    f"--k --parallel {OUTPUT}",
    *MEASURE,
    option("--docs", "another version of the documentation", "DIR", type=Path),
    option("--questions", "the question set of that version", "FILE", type=Path),
)
async def docs(options: Options, settings: Settings) -> int:
    """Indexes this product's own documentation in a temporary directory and measures retrieval over it.

    Needs no server and no model.
    """
    before = _checked(options)  # the configured index is not what is measured
    return _finished(options, await measure_docs(options, settings), before)


async def measure_docs(options: Options, settings: Settings) -> Result:
    """The result over our own documentation, with this embedder and these settings, without a language model."""
    plan, passages = plan_of(options, settings)
    settings = settings.model_copy(update=WITHOUT_MODEL)
    questions = nullcontext(options.questions) if options.questions else own_set()
    with questions as path, quiet_pipeline():
        config = configuration(path.name, settings, {**passages, "store": "data"}, "")
        async with indexed_docs(settings, options.docs) as own:
            cases = load_cases(path)
            async with opened(own.model_copy(update=passages), by_meaning=True) as assistants:
                with progress_bar("Asking") as progress:
                    result = await evaluate(Finder(assistants), cases, plan, config=config, progress=progress)
            # answers are made from as many passages as are set, however many were asked for above
            async with opened(own, by_meaning=True) as assistants:
                with progress_bar("Quoting") as progress:
                    quoted = await quotations(assistants.get(""), cases, plan.parallel, progress)
                # a question set of another state of the documentation says nothing of conversations
                second = {} if options.questions else await _asked_second(Finder(assistants), plan)
            return replace(result, config={**result.config, "quotations": quoted, "conversations": second})


async def _asked_second(finder: Finder, plan: Plan) -> Mapping[str, Any]:
    with own_set(IN_CONVERSATION) as path, progress_bar("Asking in conversations") as progress:
        return figures(await asked_second(finder, load_cases(path), plan, progress))


@asynccontextmanager
async def own_finder(settings: Settings) -> AsyncIterator[Finder]:
    """A finder over this product's own documentation, indexed in a temporary directory, without a language model."""
    async with (
        indexed_docs(settings.model_copy(update=WITHOUT_MODEL)) as own,
        opened(own, by_meaning=True) as assistants,
    ):
        yield Finder(assistants)


@command(
    f"--assistant --no-model --k --parallel --doc-map {OUTPUT}",
    argument("file", "conversations, .jsonl: messages, standalone, doc, lang"),
)
async def conversations(options: Options, settings: Settings) -> int:
    """Asks each follow-up question in its conversation and as a complete question."""
    check_writable(options)
    return _finished(options, await _searched(options, settings, load_cases(options.file), follow_ups))


@command(
    f"--assistant --no-model --keep --parallel --doc-map {OUTPUT}",
    argument("file", "unanswerable questions, .jsonl: lang, kind, question", required=False),
    option("--answerable", "question set, .jsonl or .csv", "FILE"),
)
async def refusals(options: Options, settings: Settings) -> int:
    """Measures how many unanswerable and answerable questions are refused: the decision before an answer is written, and how far the
    confidence holds.

    Without both sets, indexes and measures this product's own documentation, without a model.
    """
    check_writable(options)
    if bool(options.file) != bool(options.answerable):
        raise EvaluationError("The unanswerable questions and --answerable need each other.")
    opening = options.open_finder(options.overrides) if options.file else own_finder(settings)
    options.file = options.file or str(files("eval").joinpath("sets", UNANSWERABLE))
    options.answerable = options.answerable or str(files("eval").joinpath("sets", ANSWERABLE))
    unanswerable, answerable = load_unanswerable(options.file), load_cases(options.answerable)
    with quiet_pipeline(), progress_bar("Asking") as progress:
        async with opening as finder:
            plan = Plan(parallel=options.parallel, assistant=options.assistant, rules=options.rules)
            outcomes = await decide(finder, answerable, unanswerable, plan, progress)
    config: Mapping[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "answerable": Path(options.answerable).name,
        **configuration(options.file, settings, options.overrides, model_name(options, settings)),
    }
    result = Result(REFUSALS, outcomes, config)
    figures = Refusals(result).figures()
    if options.keep:
        keep(settings, result, groups=figures["groups"])
    return finish(options, result, refusals_text(result), lambda: refusals_page(result), **figures)


@command(
    "--html --max-drop",
    argument("a", "the result before; of eval run, also its directory", "A.json"),
    argument("b", "the result after", "B.json"),
    flag("--common", "compare only the questions that both have"),
)
async def compare(options: Options, settings: Settings) -> int:
    """Compares two results of eval retrieval, run, refusals or conversations. The exit code is 1 if something dropped."""
    del settings
    check_writable(options, "html")
    a, b = load_result(saved_file(options.a)), load_result(saved_file(options.b))
    comparison = compare_results(a, b, common=options.common, names=(options.a, options.b))
    if options.html:
        if a.kind != ANSWERS:
            raise EvaluationError(f"--html shows answers side by side, but these are results of `{a.kind}`.")
        both = side_by_side(a, b, comparison.names)
        write_text(answers_page(both.only(frozenset(case.id for case in comparison.pairs.cases))), options.html)
    dropped = drops(comparison, options.max_drop)
    sys.stdout.write(f"{comparison_text(comparison)}\n\n{drops_text(dropped, options.max_drop)}\n")
    return FAILED if dropped else OK


@command(
    "--k --parallel --max-drop",
    argument("result", "file of --out of another command, such as eval retrieval", "RESULT.json", required=False),
    option("--baseline", "the saved baseline", "FILE", required=True),
    flag("--update", "write a new baseline instead"),
)
async def gate(options: Options, settings: Settings) -> int:
    """Ends with exit code 1 if retrieval or answers are worse than a baseline.

    Without RESULT, indexes and measures this product's own documentation first.
    """
    saved = load_result(saved_file(options.result)) if options.result else None
    if options.update:
        check_writable(options, "baseline")
        result = saved or await _measured(options, settings)
        save_baseline(result, options.baseline)
        sys.stdout.write(f"{options.baseline} has {len(result.cases)} questions now. Have the change reviewed.\n")
        return OK
    baseline = load_result(options.baseline)
    result = saved or await _measured(options, settings)
    verdict = judge(result, baseline, options.max_drop)
    interval = "its 95 % interval" if result.kind == RETRIEVAL else "its interval (95 % for all rows together)"
    lines = [f"{verdict.n} questions against the baseline, each difference with {interval}:"]
    lines += map(verdict_line, verdict.verdicts)
    if verdict.new or verdict.gone:
        lines.append(f"Not compared: {verdict.new} new questions, {verdict.gone} that are gone or changed.")
    allowed = f"more than {options.max_drop:g} with an interval below 0"
    lines.append(
        f"Passed: nothing dropped by {allowed}." if verdict.passed else f"FAILED: marked rows dropped by {allowed}."
    )
    failed = failures(result.config.get("conversations", {}))
    lines += [f"FAILED: {failure}." for failure in failed]
    if lost := len(result.failed) or result.malformed:
        lines.append(f"{len(result.failed)} questions and {result.malformed} judgements failed: run it again first.")
    sys.stdout.write("\n".join(lines) + "\n")
    return OK if verdict.passed and not lost and not failed else FAILED


@command(
    "",
    argument("file", "answers with their passages; the shipped ones if it isn't given", "FAULTS.jsonl", required=False),
    flag("--missed", "print the faults that are missed"),
    flag("--written", "plant no faults, so that only those of the file count"),
    option("--out", "write what eval fit --decision stated is fitted to", "FILE"),
)
async def faults(options: Options, settings: Settings) -> int:
    """Plants faults into good answers and tells which of them readers would see marked. The exit code is 1 below the goals."""
    check_writable(options, "out")
    kept = Kept.load(options.file or str(files("eval").joinpath("sets", "faults.jsonl")))
    meaning = Meaning(kept, open_embedder(settings))
    await meaning.read()
    outcome = await measure(
        kept, load_prompts(settings.languages, settings.prompts), meaning, plants=not options.written
    )
    lines = [f"{'kind':28}{'caught':>8}{'of':>6}"]
    lines += [f"{kind:28}{outcome.caught[kind]:8}{number:6}" for kind, number in sorted(outcome.planted.items())]
    lines.append(f"Good statements that are marked: {len(outcome.alarms)} of {outcome.statements}.")
    lines += outcome.alarms
    if options.missed:
        lines += [f"missed {kind}: {one}" for kind, missed in outcome.missed.items() for one in missed]
    lines += [f"FAILED: {failure}." for failure in outcome.failures] or ["Passed."]
    sys.stdout.write("\n".join(lines) + "\n")
    if options.out:
        write_json_lines((asdict(row) for row in outcome.examples), options.out)
    return FAILED if outcome.failures else OK


async def _measured(options: Options, settings: Settings) -> Result:
    return await measure_docs(Options(**vars(options), deep=False, docs=None, questions=None), settings)
