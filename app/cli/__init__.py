"""The command line, one file per command; the only place that knows all rooms."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from app.cli.output import print_error
from app.core.errors import AssistantError

DESCRIPTION = "Answers questions about a documentation site from its own pages, with links."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 when it did what was asked, 2 for wrong input, else 1."""
    try:
        return _run(_parser().parse_args(argv))  # importing the commands takes a while, in which Ctrl-C comes as well
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output went away: head, less
        sys.stderr.close()
        return 141


def _run(arguments: argparse.Namespace) -> int:
    try:
        code: int = arguments.handler(arguments)
    except AssistantError as error:
        if arguments.debug:
            raise
        print_error(error)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    from app.cli import ask, assistants, check, evaluate, generations, ingest, pages, run, serve

    parser = argparse.ArgumentParser(
        prog="docs-assistant",
        description=DESCRIPTION,
        epilog="Settings are environment variables: docs-assistant check lists them.",
    )
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (run, serve, ask, ingest, pages, generations, assistants, check, evaluate):
        module.add_command(commands)
    return parser
