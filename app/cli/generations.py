"""`docs-assistant generations` and `rollback`: lists the kept generations of the index, and returns to the previous one."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from app.cli import logs
from app.cli.options import Commands, add_index_option, opened_store, settings_of
from app.cli.output import table_lines
from app.core.settings import Settings

if TYPE_CHECKING:
    from app.core.generation import GenerationInfo


def add_command(commands: Commands) -> None:
    """Register both commands."""
    listing = commands.add_parser("generations", help="list the kept generations of the index")
    add_index_option(listing)
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(handler=generations)
    back = commands.add_parser(
        "rollback",
        help="make the previous generation of the index live again",
        description="Makes the previous generation live again, in one step, and drops the one that was live. "
        "A running service uses it at once. The next run of ingest starts from it.",
    )
    add_index_option(back)
    back.set_defaults(handler=rollback)


def generations(arguments: argparse.Namespace) -> int:
    """Print the kept generations, newest first. Raises `NoIndex` if there are none."""
    live, kept = asyncio.run(_kept(settings_of(arguments)))
    if arguments.json:
        listed = [{"live": info.id == live, **asdict(info)} for info in kept]
        print(json.dumps(listed, ensure_ascii=False, indent=2))
        return 0
    headings = ("generation", "state", "built", "pages", "chunks", "languages", "embedder", "splitter", "analyzer")
    print(*table_lines(headings, [_row(info, live=info.id == live) for info in kept]), sep="\n")
    return 0


def rollback(arguments: argparse.Namespace) -> int:
    """Return to the previous generation and print it. Raises `NoIndex` if none is kept."""
    settings = settings_of(arguments)
    logs.configure(settings)
    info = asyncio.run(_back(settings))
    print(
        f"Generation {info.id} is live again: {info.pages} pages, {info.chunks} chunks ({', '.join(info.languages)}), "
        f"built {info.built_at} with {info.recipe.embedder}."
    )
    if info.sources:
        print(f"Its sites: {', '.join(one.url for one in info.sources)}")
    return 0


async def _kept(settings: Settings) -> tuple[int, tuple[GenerationInfo, ...]]:
    """The id of the live generation, and all kept generations."""
    async with opened_store(settings) as store:
        return (await store.live()).info.id, await store.generations()


async def _back(settings: Settings) -> GenerationInfo:
    from app.assistants.findings import roll_back
    from app.models import open_embedder

    embedder = open_embedder(settings)
    try:
        async with opened_store(settings) as store:
            return await roll_back(store, embedder)
    finally:
        await embedder.close()


def _row(info: GenerationInfo, *, live: bool) -> tuple[object, ...]:
    recipe = info.recipe
    embedder = f"{recipe.embedder} ({recipe.dimension})"
    languages = " ".join(info.languages)
    state = "live" if live else "kept"
    return info.id, state, info.built_at, info.pages, info.chunks, languages, embedder, recipe.splitter, recipe.analyzer
