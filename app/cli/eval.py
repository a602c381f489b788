"""`docs-assistant eval`: runs evaluations over a question set and compares their results."""

from __future__ import annotations

import argparse
import asyncio

from app.cli import logs
from app.cli.options import Commands
from app.core.settings import Settings


def add_command(commands: Commands) -> None:
    """Register the command."""
    from eval.commands import add_commands

    parser = commands.add_parser("eval", help="measure retrieval over a question set, compare two results")
    add_commands(parser.add_subparsers(metavar="COMMAND", required=True))
    parser.set_defaults(handler=evaluate)


def evaluate(arguments: argparse.Namespace) -> int:
    """Run the selected evaluation."""
    from eval.commands import run

    settings = Settings.load()
    logs.configure(settings)
    return asyncio.run(run(arguments, settings))
