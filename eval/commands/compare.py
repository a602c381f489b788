"""`eval compare A.json B.json`: compares two saved results."""

from __future__ import annotations

import argparse

from app.core.settings import Settings
from eval.commands.options import OK, Commands, OpenFinder, new_command, print_result
from eval.measure.compare import compare
from eval.measure.result import load_result
from eval.measure.tables import comparison_text
from eval.questions.cases import HALVES


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands, "compare", _compare, ("--json",), help="compare two saved results question by question"
    )
    parser.add_argument("a", metavar="A.json", help="the result before")
    parser.add_argument("b", metavar="B.json", help="the result after")
    parser.add_argument("--common", action="store_true", help="compare only the questions that both have")
    parser.add_argument("--half", choices=HALVES, default="", help="only every second question of A, counted from 0")


async def _compare(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del settings, open_finder
    comparison = compare(load_result(options.a), load_result(options.b), common=options.common, only=options.half)
    print_result(options, comparison.summary(), text=lambda: comparison_text(comparison))
    return OK
