"""The command line, with one module per command. It may import every other package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from app.cli.output import print_error
from app.core.errors import AssistantError

DESCRIPTION = "Answers questions about a documentation site from its own pages, with links."
COMMANDS = (
    "init",
    "run",
    "serve",
    "ask",
    "ingest",
    "pages",
    "generations",
    "assistants",
    "check",
    "eval",
    "report",
    "prompts",
    "key",
    "new",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 2 for invalid input, 1 for other errors."""
    try:
        argv = sys.argv[1:] if argv is None else argv
        return _run(_parser(*argv[:1]).parse_args(argv))  # Ctrl-C may also arrive while the commands are imported
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of the output has closed it, like head or less
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


def _parser(chosen: str = "") -> argparse.ArgumentParser:
    """The commands; only the chosen one, if there is one: importing all takes 1 s and 33 MB. `generations` adds `rollback`."""
    from app.cli.parser import Parser, Version

    parser = Parser(
        prog="docs-assistant",
        description=DESCRIPTION,
        epilog="Settings are environment variables, or lines of .env or docs-assistant.toml. docs-assistant init asks for the important ones, docs-assistant check lists all.",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--version", action=Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in [chosen] if chosen in COMMANDS else COMMANDS:
        import_module(f"app.cli.{name}").add_command(commands)
    return parser
