"""`docs-assistant eval`: measures the service over a question set."""

from __future__ import annotations

from app.cli.types import Commands


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser("eval", help="measure retrieval over a question set, compare two results")
    parser.set_defaults(handler=lambda _: (parser.print_help(), 2)[1])
