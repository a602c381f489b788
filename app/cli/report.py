"""`docs-assistant report`: what the documentation lacks, from the questions that were logged."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from app.cli.options import Commands
from app.core.errors import RequestError
from app.core.settings import Settings
from app.gaps.period import Period, add_options


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "report",
        help="show what the documentation lacks, from the questions that were asked",
        description="Groups the questions that weren't answered well by subject, over all languages. It reads the question log "
        "(DOCS_QUESTION_LOG) in the database of conversations, and the index for titles and translations.",
    )
    add_options(parser)
    parser.add_argument("--assistant", default="", metavar="ID", help="only questions to this assistant")
    parser.add_argument(
        "--index", metavar="NAME", default="", help="an [[index]] of the file that DOCS_ASSISTANTS names"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="as JSON")
    shown.add_argument("--html", metavar="FILE", default="", help="write a page")
    parser.set_defaults(handler=report)


def report(arguments: argparse.Namespace) -> int:
    """Print or write the report. Raises `RequestError` if nothing was logged in the period."""
    from app.gaps.html import as_html
    from app.gaps.making import Wanted, gap_report
    from app.gaps.text import as_text

    period = Period.read(arguments.since, arguments.until, time.time())
    made = gap_report(Settings.load(), Wanted(period, arguments.assistant, arguments.index))
    if arguments.html:
        try:
            Path(arguments.html).write_text(as_html(made), encoding="utf-8")
        except OSError as error:
            raise RequestError(f"--html {arguments.html} can't be written: {error.strerror}.") from error
        print(f"{arguments.html}: {len(made.clusters)} subjects from {made.totals.failed} questions.")
    else:
        print(json.dumps(asdict(made), ensure_ascii=False, indent=2) if arguments.json else as_text(made))
    return 0
