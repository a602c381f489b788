"""`eval retrieval`, `docs`, `conversations`, `refusals` and `clusters`: measure what is found and refused, before any answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from app.assistants.assembly import opened
from app.core.settings import Settings
from app.core.turn import Request
from app.index import open_store
from app.index.protocols import Generation
from eval.commands.options import (
    FAILED,
    NO_MODEL,
    OK,
    OUTPUT,
    SHARE,
    AssistantFinder,
    Options,
    argument,
    check_writable,
    command,
    configuration,
    finish,
    flag,
    model_name,
    number,
    option,
    print_result,
    progress_bar,
    quiet_pipeline,
)
from eval.files import EvaluationError, write_text
from eval.label import load_labels, relevant_by_case
from eval.measure.conversations import FollowUps, follow, follow_ups, summary
from eval.measure.embedding_space import draw
from eval.measure.metrics import Estimate, title
from eval.measure.refusals import MOST, RefusalResult, decide
from eval.measure.result import DEPTH, RetrievalResult, load_result, quotations
from eval.measure.retrieval import Plan, evaluate
from eval.measure.tables import as_table, difference_cell, retrieval_markdown, retrieval_text, row_name
from eval.measure.vector_clusters import Clustering, ClusterScores, clusterings
from eval.questions.cases import Case, after_another, load_cases, load_unanswerable, sample
from eval.questions.own_docs import indexed_docs, own_set
from eval.reports import conversations_page, refusals_page, retrieval_page

MEASURE = (
    number("--passages", None, "ask for N passages, not the assistant's own number"),
    flag("--deep", "measure pages and chunks at k = 1, 3, 5, 10, 15 and 20 too"),
    option("--against", "a saved result that the page compares with", "FILE"),
    flag("--markdown", "print a Markdown table"),
)


@command(
    f"file --limit --assistant --doc-map --no-model --k --parallel {OUTPUT}",
    option("--labels", "relevant chunks, as eval label writes them", "FILE"),
    *MEASURE,
    flag("--no-cross", "leave out questions whose page is in another language"),
    flag("--after-another", "ask each question after a question about something else"),
)
async def retrieval(options: Options, settings: Settings) -> int:
    """Measures on a question set whether the right pages are found."""
    check_files(options)
    cases = _chosen(load_cases(options.file), options)
    plan, passages = plan_of(options, settings)
    overrides = {**options.overrides, **passages}
    config = configuration(options.file, settings, overrides, model_name(options, settings))
    with quiet_pipeline():
        async with options.open_finder(overrides) as finder:
            with progress_bar("Asking") as progress:
                result = await evaluate(finder, cases, plan, config=config, progress=progress)
            if options.html:
                turn = await finder.find(Request(cases[0].messages, plan.assistant, "eval-page"))
                await write_report(result, options, turn.generation)
    return finish_retrieval(result, options)


def plan_of(options: Options, settings: Settings) -> tuple[Plan, dict[str, Any]]:
    """The plan, and the setting with which the assistant finds enough passages for it."""
    # k pages can't come from fewer than k passages
    passages = options.passages or max(settings.top_k, options.k)
    asked = max(passages, DEPTH) if options.deep else passages
    labels = relevant_by_case(load_labels(options.labels)) if getattr(options, "labels", "") else {}
    deep = passages if options.deep else 0
    plan = Plan(options.k, options.parallel, getattr(options, "assistant", ""), options.rules, deep, labels)
    return plan, {"top_k": asked} if asked != settings.top_k else {}


async def write_report(result: RetrievalResult, options: Options, generation: Generation) -> None:
    """Write the page of --html, with the picture of the embedding space."""
    before = load_result(options.against) if options.against else None
    with progress_bar("Reading the vectors of the pages") as progress:
        space = await draw(generation, progress)
    write_text(retrieval_page(result, before, space), options.html)


def finish_retrieval(result: RetrievalResult, options: Options) -> int:
    """Save and print the result; the exit code."""
    if options.out:
        result.save(options.out)
    text = retrieval_markdown if options.markdown else retrieval_text
    print_result(options, result.summary(), text=lambda: text(result))
    return FAILED if result.failed else OK


def check_files(options: Options) -> None:
    """Raises `EvaluationError` before a run, for files that can't be written or read at its end."""
    check_writable(options)
    if options.against:
        load_result(options.against)


def _chosen(cases: Sequence[Case], options: Options) -> tuple[Case, ...]:
    chosen = [case for case in cases if not (options.no_cross and case.cross)]
    if not chosen:
        raise EvaluationError(f"{options.file}: no question is left.")
    asked = sample(chosen, options.limit or len(chosen))
    if options.after_another and not (asked := after_another(asked)):
        raise EvaluationError(f"{options.file}: no two questions of a language are about different pages.")
    return asked


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
    check_files(options)  # the configured index is not what is measured
    return finish_retrieval(await measure_docs(options, settings), options)


async def measure_docs(options: Options, settings: Settings) -> RetrievalResult:
    """The result over our own documentation, with this embedder and these settings, without a language model."""
    plan, passages = plan_of(options, settings)
    top_k = settings.top_k
    settings = settings.model_copy(update={**passages, **NO_MODEL, "summaries": False, "questions": False})
    questions = nullcontext(options.questions) if options.questions else own_set()
    with questions as path, quiet_pipeline():
        config = configuration(path.name, settings, {"store": "data"}, "")
        async with indexed_docs(settings, options.docs) as own:
            cases = load_cases(path)
            async with opened(own) as assistants:
                with progress_bar("Asking") as progress:
                    result = await evaluate(AssistantFinder(assistants), cases, plan, config=config, progress=progress)
                if options.html:
                    await write_report(result, options, await assistants.store.live())
            # answers are made from as many passages as are set, however many were asked for above
            async with opened(own.model_copy(update={"top_k": top_k})) as assistants:
                with progress_bar("Quoting") as progress:
                    said = await quotations(assistants.get(""), cases, plan.parallel, progress)
            return replace(result, quotations=said)


@command(
    f"--assistant --no-model --k --parallel --doc-map {OUTPUT}",
    argument("file", "conversations, .jsonl: messages, standalone, doc, lang"),
)
async def conversations(options: Options, settings: Settings) -> int:
    """Asks each follow-up question in its conversation and as a complete question.

    Without a model, and with the configured model.
    """
    check_writable(options)
    cases = follow_ups(load_cases(options.file))
    ways: list[tuple[str, Mapping[str, Any]]] = [("without a model", NO_MODEL)]
    if (settings.llm_url or settings.llm_class) and not options.no_model:
        ways.append((f"with {settings.llm_model or settings.llm_class}", {}))
    measured = [await _follow(options, settings, cases, *way) for way in ways]
    finish(options, summary(measured), text=lambda: _ways_text(measured), html=lambda: conversations_page(measured))
    return FAILED if any(follow_up.asked.failed or follow_up.standalone.failed for follow_up in measured) else OK


async def _follow(
    options: Options, settings: Settings, cases: Sequence[Case], name: str, overrides: Mapping[str, Any]
) -> FollowUps:
    top_k = max(settings.top_k, options.k)  # k pages can't come from fewer than k passages
    if top_k != settings.top_k:
        overrides = {**overrides, "top_k": top_k}
    llm = settings.llm_model if "llm_url" not in overrides else ""
    plan = Plan(options.k, options.parallel, options.assistant, options.rules)
    config = configuration(options.file, settings, overrides, llm)
    with quiet_pipeline(), progress_bar(f"Asking {name}") as progress:
        async with options.open_finder(overrides) as finder:
            return await follow(finder, cases, plan, name, config=config, progress=progress)


def _ways_text(measured: Sequence[FollowUps]) -> str:
    header = ["", "n", f"{title('rr', measured[0].asked.k)} as asked", "spelled out", "difference", "language detected"]
    rows = []
    for follow_up in measured:
        rows.append([follow_up.name, *[""] * (len(header) - 1)])
        for row, apart in zip(follow_up.asked.rows, follow_up.difference.rows, strict=True):
            alone = follow_up.standalone.row(row.language, row.variant, cross=row.cross)
            assert alone is not None  # both have the same questions
            figures = [f"{result_row.measures['rr'].mean:.3f}" for result_row in (row, alone)]
            rows.append(["  " + row_name(row), str(row.n), *figures, difference_cell(apart.measures["rr"]), ""])
        rows[-1][-1] = f"{100 * follow_up.asked.language_right:.0f} %"
    failed = sum(len(follow_up.asked.failed) + len(follow_up.standalone.failed) for follow_up in measured)
    lost = [f"{failed} searches failed: they are misses."] if failed else []
    return "\n".join([*as_table(header, rows), "", "* the 95 % interval doesn't contain 0", *lost])


@command(
    f"--assistant --no-model --parallel {OUTPUT}",
    argument("file", "unanswerable questions, .jsonl: lang, kind, question"),
    option("--answerable", "question set, .jsonl or .csv", "FILE", required=True),
    option("--most", f"largest over-refusal of a chosen threshold (default {MOST})", "X", type=SHARE, default=MOST),
)
async def refusals(options: Options, settings: Settings) -> int:
    """Measures how many unanswerable and answerable questions are refused: the decision before an answer is written."""
    check_writable(options)
    unanswerable, answerable = load_unanswerable(options.file), load_cases(options.answerable)
    with quiet_pipeline(), progress_bar("Asking") as progress:
        async with options.open_finder(options.overrides) as finder:
            plan = Plan(parallel=options.parallel, assistant=options.assistant)
            decisions = await decide(finder, answerable, unanswerable, plan, progress)
    config = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "answerable": Path(options.answerable).name,
        **configuration(options.file, settings, options.overrides, model_name(options, settings)),
    }
    result = RefusalResult(decisions, options.most, config)
    finish(options, result.summary(), text=lambda: _refusals_text(result), html=lambda: refusals_page(result))
    return FAILED if result.failed else OK


def _refusals_text(result: RefusalResult) -> str:
    header = ["", "n", "refused, 95 %", "treated as small talk"]
    rows = [
        [f"{share.kind}, {share.language}", str(share.n), _percent(share.refused), f"{100 * share.smalltalk:.0f} %"]
        for share in result.shares
    ]
    now = result.now
    lines = [
        *as_table(header, rows),
        "",
        (
            f"At {now.threshold:g}: {100 * now.recall:.0f} % of the unanswerable are refused, {100 * now.over_refusal:.1f} %"
            f" of the answerable. Separation {result.separation:.3f} (1 is perfect, .5 is chance)."
        ),
        f"Thresholds, recall and over-refusal (chosen: the best recall with at most {100 * result.most:g} %):",
    ]
    near = [p for p in result.curve if round(p.threshold * 50) % 5 == 0]
    lines += [f"  {p.threshold:.1f}: {100 * p.recall:3.0f} %  {100 * p.over_refusal:4.1f} %" for p in near]
    lines += [
        f"Chosen on the {choice.chosen_on} questions: {choice.chosen.threshold:g}; on the others it refuses"
        f" {100 * choice.reported.recall:.0f} % and {100 * choice.reported.over_refusal:.1f} %."
        for choice in result.choices
    ]
    if result.failed:
        lines.append(
            f"{len(result.failed)} questions failed and are in no figure, the first with: {result.failed[0].error}"
        )
    return "\n".join(lines)


def _percent(one: Estimate) -> str:
    return f"{100 * one.mean:.0f} % ({100 * one.low:.0f}–{100 * one.high:.0f})"


@command(
    "--json --out",
    click.Option(
        ["--number"],
        type=click.IntRange(1),
        multiple=True,
        metavar="N",
        help="a number of clusters to try; may be repeated",
    ),
)
async def clusters(options: Options, settings: Settings) -> int:
    """Clusters the vectors of the index anew in a temporary directory. Needs no questions and no model."""
    from app.index.embedded.generation import EmbeddedGeneration

    check_writable(options, "out")
    store = open_store(settings)
    try:
        live = await store.live()
        if not isinstance(live, EmbeddedGeneration):
            raise EvaluationError(
                "OpenSearch searches a graph and has no clusters: this needs an index in a directory."
            )
        measured = await clusterings(live, options.number)
    finally:
        await store.close()
    finish(options, [asdict(clustering) for clustering in measured], text=lambda: _clusters_text(measured))
    return OK


CLUSTER_COLUMNS = ("homogeneity", "completeness", "v")


def _clusters_text(measured: list[Clustering]) -> str:
    header = ["clusters", "largest", *(f"{name} by {kind}" for kind in ("page", "folder") for name in CLUSTER_COLUMNS)]
    rows = [
        [str(clustering.clusters), str(clustering.largest), *_cells(clustering.by_page), *_cells(clustering.by_folder)]
        for clustering in measured
    ]
    return "\n".join(as_table(header, rows))


def _cells(scores: ClusterScores) -> list[str]:
    return [f"{value:.3f}" for value in (scores.homogeneity, scores.completeness, scores.v)]
