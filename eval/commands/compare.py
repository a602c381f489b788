"""`eval compare A.json B.json`."""

from __future__ import annotations

import argparse
import sys

from app.core.settings import Settings
from eval.commands.options import OK, Commands, OpenFinder, as_json
from eval.measure.compare import compare
from eval.measure.result import load_result
from eval.measure.tables import comparison_text
from eval.questions.cases import HALVES


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser("compare", help="set two kept results against each other, question by question")
    parser.set_defaults(evaluation=_compare)
    parser.add_argument("a", metavar="A.json", help="the result before")
    parser.add_argument("b", metavar="B.json", help="the result after")
    parser.add_argument("--common", action="store_true", help="only the questions that both have")
    parser.add_argument("--half", choices=HALVES, default="", help="only every second question of A, counted from 0")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def _compare(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del settings, open_finder
    comparison = compare(load_result(options.a), load_result(options.b), common=options.common, only=options.half)
    text = as_json(comparison.summary()) if options.json else comparison_text(comparison)
    sys.stdout.write(text + "\n")
    return OK
