"""Shared by several commands: the type of argparse's sub-commands, the option `--index`, and an open store."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from app.core.settings import Settings

if TYPE_CHECKING:
    from app.index import Store

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


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    """Context of the store, which is closed afterwards."""
    from app.index import open_store

    store = open_store(settings)
    try:
        yield store
    finally:
        await store.close()
