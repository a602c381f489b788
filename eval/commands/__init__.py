"""The commands of `docs-assistant eval`, one file each; `run` executes the parsed arguments."""

from __future__ import annotations

import argparse
import sys

from app.core.settings import Settings
from eval.commands import (
    check,
    clusters,
    compare,
    conversations,
    docs,
    from_log,
    gate,
    generate,
    grid,
    label,
    refusals,
    retrieval,
)
from eval.commands import run as run_command
from eval.commands.finder import open_finder
from eval.commands.options import WRONG_INPUT, Commands, Handler, OpenFinder
from eval.errors import EvaluationError

__all__ = ["OpenFinder", "add_commands", "run"]


def add_commands(commands: Commands) -> None:
    """Add every command below `docs-assistant eval`."""
    for add in (
        docs.add_command, retrieval.add_command, conversations.add_command, refusals.add_command, run_command.add_command,
        grid.add_command, compare.add_command, check.add_command, gate.add_command, generate.add_command, label.add_command,
        clusters.add_command, from_log.add_command,
    ):  # fmt: skip
        add(commands)


async def run(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder = open_finder) -> int:
    """Execute the parsed arguments. Exit code 0, 1 if something failed, 2 for wrong input."""
    handler: Handler = options.evaluation
    try:
        return await handler(options, settings, open_finder)
    except EvaluationError as error:
        sys.stderr.write(f"{error}\n")
        return WRONG_INPUT
