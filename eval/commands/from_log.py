"""`eval from-log`: makes a question set of the questions that readers asked."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from app.conversations.question_log import PERIOD_OPTIONS, Period
from app.core.settings import Settings
from eval.commands.options import OK, Options, check_writable, command, option
from eval.files import EvaluationError, write_json_lines


@command(
    "--assistant",
    *PERIOD_OPTIONS,
    option("--only", "only these questions", type=click.Choice(("all", "refused", "weak", "down")), default="all"),
    option("--out", "the set, .jsonl", "FILE", required=True),
)
async def from_log(options: Options, settings: Settings) -> int:
    """Writes each logged question once, as it was redacted.

    Those whose answer was rated up have the page that it used; the others go to a file of their own, to be labelled or asked as
    unanswerable ones.
    """
    from eval.questions.own_docs import logged_rows

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
