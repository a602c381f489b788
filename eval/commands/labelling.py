"""`eval clusters`: clustered beside naive search, and the space of the embeddings. `eval label` and `agreement`: labels of relevance by
models and people.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import click

from app.core.settings import Settings
from app.core.turn import Request
from eval.commands.answers import judge_all
from eval.commands.options import (
    FAILED,
    JUDGE,
    NO_MODEL,
    OK,
    OUTPUT,
    SHARE,
    Options,
    argument,
    check_writable,
    command,
    configuration,
    finish,
    flag,
    number,
    option,
    output_folder,
    progress_bar,
    quiet_pipeline,
    several,
)
from eval.files import EvaluationError, in_parallel, write_text
from eval.judge import Task, own_criterion
from eval.measure.agreement import CONSENSUS, against, consensus, fleiss, same, votes
from eval.measure.clusters import Space, clustered, cosines, picture
from eval.measure.retrieval import Finder
from eval.measure.tables import as_table, clusterings_table, clusters_table, cosines_line
from eval.questions.cases import Case, load_cases, sample
from eval.questions.labels import (
    DEPTH,
    Label,
    Pair,
    drawn,
    load_labels,
    pairs_of,
    pooled,
    relevant_chunks,
    write_labels,
    write_sheet,
)
from eval.reports.pages import clusters_page, sheet_page

RELEVANT = own_criterion(
    "relevant",
    "RELEVANT",
    "IRRELEVANT",
    """Does the PASSAGE help to answer the QUESTION?
RELEVANT: it has the answer, or a part of it that a correct answer needs.
IRRELEVANT: it is only about the same topic, or about something else.""",
    ("question", "passage"),
)


def _need_sklearn() -> None:
    if not find_spec("sklearn"):
        raise EvaluationError("This needs scikit-learn: pip install 'docs-assistant[clusters]'.")


@command(
    f"file --limit --doc-map {OUTPUT}",
    click.Option(
        ["--number"],
        type=click.IntRange(1),
        multiple=True,
        metavar="N",
        help="clusters; may be repeated; by default as in the step clusters",
    ),
    option("--labels", "labels of relevance; without them, the chunks of the right pages are relevant", "FILE"),
)
async def clusters(options: Options, settings: Settings) -> int:
    """Measures search by clusters beside naive search (F1 of 5 to 30 chunks), and how well clusters agree with labels of the chunks.

    With --html, draws the space of the embeddings. Asks no language model, and no assistant: vectors alone are measured.
    """
    _need_sklearn()
    check_writable(options)
    relevant = relevant_chunks(load_labels(options.labels)) if options.labels else options.rules
    cases = load_cases(options.file)
    cases = sample(cases, options.limit or len(cases))
    async with options.open_finder(NO_MODEL) as finder:
        generation = await finder.assistants.store.live()
        with progress_bar("Embedding questions") as bar:
            space = await Space.read(generation, finder.assistants.embedder, cases, relevant, bar)
    with progress_bar("Clustering") as bar:
        result, found = await clustered(space, options.number, settings.tuning.clusters, bar)
    kind = Path(options.labels).name if options.labels else "chunks of the right pages"
    config = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "relevant": kind,
        "index": asdict(generation.info),
        **configuration(options.file, settings, {}, ""),
    }
    result = replace(result, config={**result.config, **config})
    drawing, near = picture(space), cosines(space)
    lines = [*as_table(*clusters_table(result)), "", *as_table(*clusterings_table(found)), "", cosines_line(near)]
    lines.append(f"{len(space.cases)} of {len(cases)} questions have relevant chunks ({kind}).")
    return finish(
        options,
        result,
        "\n".join(lines),
        lambda: clusters_page(result, found, near, drawing),
        clusterings=found,
        cosines=near,
        picture=drawing,
    )


@command(
    f"file --limit --parallel --assistant {JUDGE}",
    option("--out", "directory for labels, judgements and sheets", "DIR", required=True),
    number("--depth", DEPTH, f"chunks of each search method (default {DEPTH})"),
    flag("--all", "label all chunks of the index for each question, not only those that are found"),
    number("--sheet", None, "write sheet.csv and sheet.html with N pairs for people"),
)
async def label(options: Options, settings: Settings) -> int:
    """Labels which chunks are relevant to the questions: by a model (--judge-url), or by people (--sheet).

    A stopped run continues where it ended. Run it again with another --judge-model into the same directory for a second opinion.
    """
    del settings
    if bool(options.judge_url) != bool(options.judge_model):
        raise EvaluationError("--judge-url and --judge-model need each other.")
    if not (options.judge_url or options.sheet):
        raise EvaluationError("Who labels? Give --judge-url and --judge-model for a model, or --sheet N for people.")
    folder = output_folder(options)
    cases = load_cases(options.file)
    cases = sample(cases, options.limit or len(cases))
    async with options.open_finder(NO_MODEL) as finder:
        with quiet_pipeline(), progress_bar("Searching") as progress:
            found = await in_parallel(cases, lambda _, case: _pairs(options, finder, case), options.parallel, progress)
    pairs = [pair for own in found for pair in own]
    code = await _by_model(options, folder, pairs) if options.judge_url else OK
    if options.sheet:
        known = [one for path in sorted(folder.glob("labels-*.jsonl")) for one in load_labels(path)]
        chosen = drawn(pairs, known, options.sheet)
        write_sheet(chosen, folder / "sheet.csv")
        write_text(sheet_page(chosen), folder / "sheet.html")
        sys.stdout.write(
            f"{folder}/sheet.html and .csv: {len(chosen)} pairs. Give each person a copy to save as NAME.csv.\n"
        )
    return code


async def _pairs(options: Options, finder: Finder, case: Case) -> list[Pair]:
    turn = await finder.find(Request(case.messages, assistant=options.assistant, id="eval-label"))
    if options.all:
        ids = [id_ for page in await turn.generation.pages() for id_ in page.derived.chunk_ids]
    else:
        ids = list(pooled(turn.search, options.depth)) if turn.search else []
    return await pairs_of(turn.generation, case, ids)


async def _by_model(options: Options, folder: Path, pairs: Sequence[Pair]) -> int:
    tasks = [Task(one.chunk, RELEVANT, {"question": one.question, "passage": one.passage}) for one in pairs]
    judgements = await judge_all(options, tasks)
    labels = [
        Label(pair.case, pair.chunk, judged.verdict, options.judge_model)
        for pair, judged in zip(pairs, judgements, strict=True)
        if judged.verdict is not None
    ]
    name = re.sub(r"[^\w.-]+", "-", options.judge_model)
    path = folder / f"labels-{name}.jsonl"
    write_labels(labels, path)
    failed = [one.error for one in judgements if one.error]
    unsure = len(judgements) - len(labels) - len(failed)
    lines = [f"{path}: {len(labels)} labels, {sum(one.relevant for one in labels)} relevant; unsure of {unsure}."]
    if failed:
        lines.append(f"{len(failed)} failed, the first with: {failed[0]}. Run it again: it repeats only these.")
    sys.stdout.write("\n".join(lines) + "\n")
    return FAILED if failed else OK


@command(
    "",
    argument("labels", "labels of models (.jsonl) or of people (filled-in sheets, .csv)", nargs=-1, required=True),
    several("--person", "labels of a person, whose consensus the others are compared with; may be repeated", "FILE"),
    option("--threshold", "share of raters that makes a pair relevant (0.5)", "X", type=SHARE, default=CONSENSUS),
    option("--out", "save the consensus as labels, .jsonl", "FILE"),
)
async def agreement_(options: Options, settings: Settings) -> int:
    """Compares those who labelled relevance: with the consensus (F1, Cohen's kappa), and among each other (Fleiss' kappa)."""
    del settings
    _need_sklearn()
    check_writable(options, "out")
    paths = [*options.labels, *options.person]
    raters = {Path(path).stem: {(one.case, one.chunk): one.relevant for one in load_labels(path)} for path in paths}
    if len(raters) < max(2, len(paths)):
        raise EvaluationError("It takes at least two files of labels, with different names.")
    people = [Path(path).stem for path in options.person] or list(raters)
    several = [said for said in votes(raters.values()).values() if len(said) > 1]
    if not several:
        raise EvaluationError("Nobody labelled a pair that another one labelled, too. Are the files of one sample?")
    rows = list[list[str]]()
    for name, own in raters.items():
        if one := against(own, consensus([raters[p] for p in people if p != name], options.threshold)):
            shares = [f"{100 * one[share]:.0f} %" for share in ("relevant", "same")]
            scores = [f"{one[score]:.2f}" for score in ("precision", "recall", "f1", "kappa")]
            rows.append([name, f"{one['n']}", *shares, *scores])
    alike = f"{100 * sum(map(same, several)) / len(several):.0f} % of the labels agree"
    unanimous = sum(len(set(said)) == 1 for said in several)
    lines = [
        *as_table(["rater", "pairs", "relevant", "as the consensus", "P", "R", "F1", "Cohen's kappa"], rows),
        f"Relevant by consensus: at least {100 * options.threshold:.0f} % of the raters say so.",
        f"Of {len(several)} pairs that several labelled, {alike}, all of them on {unanimous} pairs; Fleiss' kappa {fleiss(several):.2f}.",
    ]
    if options.out:
        agreed = consensus([raters[name] for name in people], options.threshold)
        write_labels((Label(*key, relevant, "consensus") for key, relevant in agreed.items()), options.out)
        lines.append(f"{options.out}: {len(agreed)} labels, {sum(agreed.values())} relevant.")
    sys.stdout.write("\n".join(lines) + "\n")
    return OK
