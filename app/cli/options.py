"""What several commands share: the type of argparse's sub-commands, and the option `--index`."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from app.core.settings import Settings

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # argparse has no public name for it


def add_index_option(parser: argparse.ArgumentParser) -> None:
    """Add `--index NAME`, which selects an `[[index]]` of assistants.toml instead of the configured index."""
    parser.add_argument(
        "--index", metavar="NAME", default="", help="an [[index]] of the file that DOCS_ASSISTANTS names"
    )


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The settings, with the store and the embedder of the index that `--index` selects."""
    from app.assistants.file import index_settings

    settings = Settings.load()
    return index_settings(settings, arguments.index) if arguments.index else settings
