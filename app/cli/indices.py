"""`--index NAME`: the command works on an `[[index]]` of assistants.toml instead of the configured one."""

from __future__ import annotations

import argparse

from app.core.settings import Settings


def add_index_option(parser: argparse.ArgumentParser) -> None:
    """Register the option."""
    parser.add_argument(
        "--index", metavar="NAME", default="", help="an [[index]] of the file that DOCS_ASSISTANTS names"
    )


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The settings, with the store and the embedder of the index that is asked for."""
    from app.assistants.file import index_settings

    settings = Settings.load()
    return index_settings(settings, arguments.index) if arguments.index else settings
