"""`docs-assistant ingest`: indexes sites into the store."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, cast

from app.cli import logs, tracing
from app.cli.options import Commands, add_index_option, settings_of
from app.cli.output import print_error
from app.cli.sites import again, indexed
from app.core.errors import NotPublished, SettingsError, StoreError, StoreUnavailable
from app.core.settings import Settings

if TYPE_CHECKING:
    from app.index import Store
    from app.models import Embedder
    from ingestion.report import Report
    from ingestion.resuming import ResumingEmbedder
    from ingestion.sharding.shared import Shard
    from ingestion.sources import Source


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "ingest",
        help="index documentation sites",
        description="Indexes sites and publishes the new index in one step; pages of other sites are kept.",
        epilog="Exit codes: 0 all pages are indexed; 2 published, but some pages or a reader failed; 3 not published, because too much of "
        "a site was missing, failed or empty (--force publishes it); 1 not published, because of an error.",
    )
    parser.add_argument(
        "site",
        nargs="*",
        help="address of a sitemap or a site, or a TOML file of sources (default: DOCS_SITES and DOCS_SOURCES, else what is indexed)",
    )
    parser.add_argument("--only", action="store_true", help="remove the pages of all other sites from the index")
    parser.add_argument("--force", action="store_true", help="publish even if too much of a site is missing")
    parser.add_argument(
        "--collection",
        action="append",
        metavar="NAME",
        help="index only the sources of this collection (can be repeated)",
    )
    parser.add_argument(
        "--indexed",
        action="append",
        metavar="URL",
        help="read this site of the index again with its recorded settings, too (can be repeated)",
    )
    parser.add_argument("--dry-run", action="store_true", help="write nothing, only report what would change")
    parser.add_argument(
        "--rebuild", action="store_true", help="build a new index, even if the existing one can't be read"
    )
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="how long to wait for another run to finish"
    )
    parser.add_argument(
        "--draft", metavar="NAME", help="divide this run among several machines: the name that all its shards share"
    )
    parser.add_argument(
        "--shard", metavar="2/4", help="read the second of four parts of the pages; the last one that is done publishes"
    )
    parser.add_argument(
        "--finish", type=int, metavar="SHARDS", help="publish what all shards of the draft have read, so many of them"
    )
    add_index_option(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="also write the report as an HTML page")
    parser.set_defaults(handler=ingest)


def ingest(arguments: argparse.Namespace) -> int:
    """Index the sites. Returns the exit code of the report."""
    from ingestion.report_page import write_page
    from ingestion.sources import as_sources, configured, of_collections

    settings = settings_of(arguments)
    logs.configure(settings)
    named = arguments.site or configured(settings)
    if arguments.only and not named:  # of the recorded sites, some may not be read again
        raise SettingsError("--only needs the sites that stay: name them, or set DOCS_SITES.")
    sites: Sequence[str | Source] = named
    if arguments.indexed or not named:
        sites = (*as_sources(named), *_indexed(settings, arguments.indexed))
    if arguments.collection:
        sites = of_collections(as_sources(sites), arguments.collection, settings)
    if arguments.html and not Path(arguments.html).parent.is_dir():
        raise SettingsError(f"--html {arguments.html}: there is no directory {Path(arguments.html).parent}.")
    given = dict(vars(arguments))
    given["shard"] = shard_of(arguments)
    options = IngestOptions(**{one.name: given[one.name] for one in fields(IngestOptions) if one.name in given})
    try:
        # a reader may print, and the output is the report
        with redirect_stdout(sys.stderr), tracing.tracing():
            report = asyncio.run(index(settings, sites, options))
    except NotPublished as error:
        print_error(error)
        report = cast("Report", error.report)
    print(report.to_json() if arguments.json else report.text)
    if arguments.html:
        write_page(report, Path(arguments.html))
    return report.exit_code


def shard_of(arguments: argparse.Namespace) -> Shard | None:
    """What of a draft is to be done. Raises `SettingsError` for options that don't fit."""
    from ingestion.sharding.shared import Shard

    draft, shard, count = arguments.draft, arguments.shard, arguments.finish
    if draft is shard is count is None:
        return None
    if draft is None or (shard is None) == (count is None):
        raise SettingsError(
            "A draft needs its name and what to do: --draft NAME with either --shard 2/4 or --finish 4."
        )
    if count is not None:
        return Shard(draft, count)
    number, _, of = shard.partition("/")
    if not (number.isdecimal() and of.isdecimal() and int(number)):
        raise SettingsError(f"--shard {shard}: write its number and how many there are, as --shard 2/4.")
    return Shard(draft, int(of), int(number))


def _indexed(settings: Settings, urls: Sequence[str] | None) -> Sequence[Source]:
    """The sources of the index, or those with these addresses, which are said on standard error.

    Raises `SettingsError` if there are none.
    """
    sources, lines = asyncio.run(_again(settings, urls))
    print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
    if not sources:
        raise SettingsError(
            "No site to index: name a sitemap, for example docs-assistant ingest https://docs.example.org/sitemap.xml, or set DOCS_SITES or DOCS_SOURCES."
        )
    return sources


async def _again(settings: Settings, urls: Sequence[str] | None) -> tuple[Sequence[Source], Sequence[str]]:
    found = await indexed(settings)
    return again(found if urls is None else found.only(urls), settings)


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Options of `ingestion.run.ingest`."""

    only: bool = False
    replace: bool = False
    force: bool = False
    dry_run: bool = False
    rebuild: bool = False
    supersede: bool = False
    wait: float = 0.0
    shard: Shard | None = None


async def index(settings: Settings, sites: Sequence[str | Source], options: IngestOptions) -> Report:
    """Index the sites, show progress on standard error, and return the report."""
    from app.index import open_store
    from app.models import open_embedder
    from ingestion.progress import open_progress
    from ingestion.run import ingest as ingest_sites

    store, opened = open_store(settings), open_embedder(settings)
    try:
        await live_embedder(store)  # a store that is away is an error before any site is read
        resuming, progress = _resuming(opened, settings), open_progress(sys.stderr)
        embedder = resuming.get(opened.name, opened)
        report = await ingest_sites(
            sites,
            store=store,
            embedder=embedder,
            settings=settings,
            progress=progress,
            **{one.name: getattr(options, one.name) for one in fields(options)},
        )
        for one in resuming.values():
            one.finish(report)
        return report
    finally:
        await store.close()
        await opened.close()


def _resuming(embedder: Embedder, settings: Settings) -> Mapping[str, ResumingEmbedder]:
    """The embedders by name that keep their vectors in the directory of the index, also as `others` of the given one.

    Without those of other stores, and those whose vectors cost little.
    """
    from app.index import directory_of
    from app.index.vector_cache import VectorCache
    from app.models.default import DefaultEmbedder
    from app.models.static import StaticEmbedder
    from ingestion.resuming import ResumingEmbedder

    if (directory := directory_of(settings)) is None:
        return {}
    options = settings.embedding_max_chars, settings.embedding_extra_body, settings.embedding_args
    others = embedder.others if isinstance(embedder, DefaultEmbedder) else {}
    found = {
        one.name: ResumingEmbedder(one, VectorCache(directory, one.name, *options))
        for one in (embedder, *others.values())
        if not isinstance(one, StaticEmbedder)
    }
    if isinstance(embedder, DefaultEmbedder):
        embedder.others = found
    return found


async def live_embedder(store: Store) -> str:
    """The embedder that the live index records; empty if there is none, or if it is damaged and so built anew.

    Raises `StoreUnavailable`: with a guess, the run would build the whole index anew with another embedder.
    """
    try:
        return (await store.live()).info.recipe.embedder
    except StoreUnavailable:
        raise
    except StoreError:
        return ""
