"""`eval from-log`: makes a question set of the questions that readers asked."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from app.core.settings import Settings
from app.gaps.period import Period, add_options
from eval.commands.options import OK, Commands, OpenFinder, check_writable, new_command
from eval.errors import EvaluationError
from eval.files import write_json_lines


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "from-log",
        _from_log,
        ("--assistant",),
        help="make a question set of the questions that readers asked",
        description="Writes each logged question once, as it was redacted. Those whose answer was rated up have the page that it used; "
        "the others go to a file of their own, to be labelled or asked as unanswerable ones.",
    )
    add_options(parser)
    parser.add_argument(
        "--only", choices=("all", "refused", "weak", "down"), default="all", help="only these questions"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the set, .jsonl")


async def _from_log(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    from eval.questions.from_log import logged_rows

    out = Path(options.out)
    if out.suffix.lower() != ".jsonl":
        raise EvaluationError(f"--out {out}: a question set is a .jsonl file.")
    check_writable(options, "out")
    period = Period.read(options.since, options.until, time.time())
    rows = logged_rows(settings, period, options.only, options.assistant)
    labelled = [row for row in rows if "doc" in row]
    others = [row for row in rows if "doc" not in row]
    for part, path in ((labelled, out), (others, out.with_suffix(".unlabelled.jsonl"))):
        if part:
            write_json_lines(part, path)
            sys.stdout.write(f"{path}: {len(part)} questions\n")
    if not labelled:
        sys.stdout.write("No answer to these questions was rated up, so none has a page.\n")
    return OK
