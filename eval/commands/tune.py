"""`eval tune FILE`: better weights and boosts, where they are better beyond the noise."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from app.core.settings import Settings
from app.core.turn import Request
from eval.commands.asking import progress_bar, quiet_pipeline
from eval.commands.retrieval import add_documents_option
from eval.commands.types import NO_MODEL, OK, Commands, OpenFinder, as_json, positive
from eval.errors import EvaluationError
from eval.measure.halves import Swapped, halves
from eval.measure.metrics import Estimate
from eval.measure.retrieval import Finder
from eval.measure.tables import as_table
from eval.measure.tune import Searched, Tuned, settings_of, tune
from eval.questions.cases import HALVES, Case, half, load_cases
from eval.questions.documents import Documents, parse_rules


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "tune",
        help="search weights and boosts by cross-validation",
        description="Changes nothing: it says what to set, and refuses gains that lie inside the noise.",
    )
    parser.set_defaults(evaluation=_tune)
    parser.add_argument("file", metavar="FILE", help="question set, .jsonl or .csv")
    parser.add_argument("--k", type=positive, default=5, help="how many pages count (default 5)")
    parser.add_argument("--no-model", action="store_true", help="search without the configured language model")
    parser.add_argument(
        "--halves",
        action="store_true",
        help="choose on one half and judge on the other, both ways, against plain fusion",
    )
    parser.add_argument(
        "--half", choices=HALVES, default="", help="by every second question only, counted from 0; the others can judge"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_documents_option(parser)


async def _tune(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del settings
    cases = load_cases(options.file)
    cases = half(cases, options.half) if options.half else cases
    overrides = NO_MODEL if options.no_model else {}
    with quiet_pipeline():
        async with open_finder(overrides) as finder:
            searched, urls = await _search(finder, cases)
    documents = Documents(urls, parse_rules(options.doc_map))
    if options.halves:
        ways = halves(searched, documents, options.k)
        sys.stdout.write((as_json([asdict(way) for way in ways]) if options.json else _halves_text(ways)) + "\n")
        return OK
    with progress_bar("Trying") as progress:
        tuned = tune(searched, documents, options.k, progress)
    sys.stdout.write((as_json([asdict(one) for one in tuned]) if options.json else _text(tuned, options.k)) + "\n")
    return OK


async def _search(finder: Finder, cases: Sequence[Case]) -> tuple[list[Searched], list[str]]:
    searched, urls = list[Searched](), list[str]()
    with progress_bar("Searching") as progress:
        for number, case in enumerate(cases, start=1):
            turn = await finder.find(Request(case.messages, id=f"eval-{number}"))
            if turn.legs is None or turn.search is None:
                raise EvaluationError("The assistant searches without the step `retrieve`: there is nothing to tune.")
            urls = urls or [page.url for page in await turn.generation.pages()]
            searched.append(Searched(case, turn.legs, turn.search))
            progress(number, len(cases))
    return searched, urls


def _halves_text(ways: Sequence[Swapped]) -> str:
    lines = []
    for way in ways:
        chosen = ", ".join(
            f"{code}: vector {one.vector_weight:g}, other language {one.other_language:g}, {one.fusion}"
            for code, one in way.best.items()
        )
        code, variant, gain = way.worst
        lines += [
            f"Chosen on the {way.chosen_on} questions ({chosen}), judged on the other {way.n}:",
            f"  over plain fusion (rrf, no preference for a language) {_cell(way.over_plain)}",
            f"  over the settings in force                            {_cell(way.over_now)}",
            f"  least gain over plain fusion: {code} {variant} {gain:+.3f}",
        ]
    return "\n".join(lines)


def _cell(gain: Estimate) -> str:
    return f"{gain.mean:+.3f} {gain.low:+.3f}…{gain.high:+.3f}"


def _text(tuned: Sequence[Tuned], k: int) -> str:
    header = ["question language", "n", f"MRR@{k} now", "best", "gain, cross-validated", "gain it was chosen by", ""]
    rows = [
        [
            one.language,
            str(one.n),
            f"{one.before:.3f}",
            f"vector {one.best.vector_weight:g}, other language {one.best.other_language:g}, {one.best.fusion}",
            _cell(one.gain),
            f"{one.flattered:+.3f}",
            "better" if one.accepted else "inside the noise: keep what is set",
        ]
        for one in tuned
    ]
    lines = [*as_table(header, rows), ""]
    if shares := settings_of(tuned):
        lines.append(f"DOCS_VECTOR_WEIGHT='{json.dumps(shares)}'")
    lines += [
        f"For {one.language} it was chosen with other language {one.best.other_language:g}, {one.best.fusion}."
        for one in tuned
        if one.accepted
    ]
    if not any(one.accepted for one in tuned):
        lines.append("Nothing is better beyond the noise: keep what is set.")
    return "\n".join(lines)
