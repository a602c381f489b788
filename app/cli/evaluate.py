"""`docs-assistant eval`: measures the service over a question set, and compares two results."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from app.cli import logs
from app.cli.types import Commands
from app.core.models.base import Model
from app.core.settings import Settings
from app.core.turn import Request, Turn


def add_command(commands: Commands) -> None:
    """Register the command."""
    from eval.commands import add_commands

    parser = commands.add_parser("eval", help="measure retrieval over a question set, compare two results")
    add_commands(parser.add_subparsers(metavar="COMMAND", required=True))
    parser.set_defaults(handler=evaluate)


def evaluate(arguments: argparse.Namespace) -> int:
    """Run the evaluation that was named."""
    from eval.commands import run

    settings = Settings.load()
    logs.configure(settings)
    return asyncio.run(run(arguments, settings, _open_finder))


@dataclass(frozen=True)
class _Finder:
    assistants: Any

    async def find(self, request: Request) -> Turn:
        turn: Turn = await self.assistants.get(request.assistant).find(request)
        return turn

    async def weigh(self, request: Request) -> Turn:
        turn: Turn = await self.assistants.get(request.assistant).weigh(request)
        return turn


@asynccontextmanager
async def _open_finder(overrides: Mapping[str, Any], model: Model | None = None) -> AsyncIterator[_Finder]:
    from app.assembly import opened

    async with opened(Settings.load(**overrides), model=model) as assistants:
        yield _Finder(assistants)
