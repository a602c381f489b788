"""Parts of several commands: the options `--index` and `--json`, an open store, tables, outlines, and errors on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click
import yaml  # type: ignore[import-untyped]

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


def outline(content: object) -> str:
    """The same as YAML for people, without what is empty."""
    text: str = yaml.dump(_filled(content), Dumper=_Outline, sort_keys=False, allow_unicode=True, width=math.inf)
    return text


def _filled(value: Any) -> Any:
    """The value without the parts of it that are empty."""
    match value:
        case Mapping():
            filled = {name: _filled(part) for name, part in value.items()}
            return {name: part for name, part in filled.items() if part not in (None, "", [], {})}
        case list() | tuple():
            return [_filled(part) for part in value]
    return value


class _Outline(yaml.SafeDumper):  # type: ignore[misc]  # yaml isn't typed
    """Writes what has no parts on one line, and texts of several lines as they are."""

    def represent_str(self, text: str) -> Any:
        """The text; as a block if it has several lines, and with no quotation mark of its own doubled."""
        style = "|" if "\n" in text else '"' if "'" in text and '"' not in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
        """The values by name."""
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = not any(
            isinstance(value, yaml.CollectionNode) or value.style == "|" for _, value in node.value
        )
        return node


_Outline.add_representer(str, _Outline.represent_str)
