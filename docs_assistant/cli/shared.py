"""Parts of several commands: the options `--index` and `--json`, an open store, tables, and errors on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from app.core.errors import AssistantError
from app.core.log_message import masked

if TYPE_CHECKING:
    from app.core.settings import Settings
    from app.index import Store

index_option = click.option(
    "--index", metavar="NAME", default="", help="an [[index]] of the file that DOCS_ASSISTANTS names"
)
json_option = click.option("--json", "as_json", is_flag=True, help="as JSON")
host_option = click.option("--host", help="address to listen on (DOCS_HOST)")
port_option = click.option("--port", type=int, help="port to listen on (DOCS_PORT)")
site_argument = click.argument(
    "site",
    nargs=-1,
    help="address of a sitemap or a site, or a TOML file of sources (default: DOCS_SITES and DOCS_SOURCES, else what is indexed)",
)


def settings_of(index: str) -> Settings:
    """The settings, with the store and the embedder of the index that `--index` selects."""
    from app.core.settings import Settings

    settings = Settings.load()
    if not index:
        return settings
    from app.assistants.file import index_settings  # what an assistant consists of takes .5 s to load

    return index_settings(settings, index)


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    """Context of the store, which is closed afterwards."""
    from app.index import open_store

    store = open_store(settings)
    try:
        yield store
    finally:
        await store.close()


def print_error(error: AssistantError) -> None:
    """Print the error's message on standard error; passwords in addresses are masked."""
    print(f"docs-assistant: {masked(str(error))}", file=sys.stderr)


def json_text(content: object) -> str:
    """JSON as the commands print it."""
    return json.dumps(content, ensure_ascii=False, indent=2)


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The lines of a table with numbers aligned right. Nothing is cut off, so the output can be searched and piped."""
    table = [[" ".join(str(value).split()) or "-" for value in row] for row in rows]
    numeric = [all(isinstance(value, int) for value in column) for column in zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(headings, *table, strict=True)]
    right = numeric or [False] * len(headings)
    for cells in (headings, *table):
        columns = zip(cells, widths, right, strict=True)
        yield "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in columns
        ).rstrip()
