"""`docs-assistant ingest`: index sites into the store."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from app.cli import logs
from app.cli.messages import tell
from app.cli.types import Commands
from app.core.errors import RunRefused, SettingsError
from app.core.settings import Settings

if TYPE_CHECKING:
    from ingestion.report import Report


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "ingest",
        help="index documentation sites",
        description="Indexes sites and publishes the new index in one step; pages of other sites stay as they are.",
        epilog="Exit codes: 0 all pages are in; 2 published, but some pages failed; 3 not published, because too much of "
        "a site was missing, failed or empty (--force publishes it); 1 not published, because of an error.",
    )
    parser.add_argument(
        "site",
        nargs="*",
        help="address of a sitemap or a site, or TOML file of sources (default: DOCS_SITES, DOCS_SOURCES)",
    )
    parser.add_argument("--only", action="store_true", help="pages of sites that aren't named leave the index")
    parser.add_argument("--force", action="store_true", help="publish also when too much of a site is missing")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.set_defaults(handler=ingest)


def ingest(arguments: argparse.Namespace) -> int:
    """Index the sites; the exit code is the report's."""
    from ingestion.sources import configured

    settings = Settings.load()
    logs.configure(settings)
    sites = arguments.site or configured(settings)
    if not sites:
        raise SettingsError(
            "No site to index: name its sitemap, as docs-assistant ingest https://docs.example.org/sitemap.xml, or set DOCS_SITES or DOCS_SOURCES."
        )
    try:
        report = asyncio.run(index(settings, sites, only=arguments.only, force=arguments.force))
    except RunRefused as error:
        tell(error)
        report = cast("Report", error.report)
    if arguments.json:
        print(report.to_json())
    else:
        print(report.text)
    return report.exit_code


async def index(settings: Settings, sites: Sequence[str], *, only: bool, force: bool = False) -> Report:
    """Index the sites with progress on standard error, and return the report."""
    from app.core.models import open_embedder
    from app.core.store import open_store
    from ingestion.progress import open_progress
    from ingestion.run import ingest as ingest_sites

    store, embedder = open_store(settings), open_embedder(settings)
    progress = open_progress(sys.stderr)
    try:
        return await ingest_sites(
            sites, store=store, embedder=embedder, settings=settings, progress=progress, only=only, force=force
        )
    finally:
        await store.close()
        await embedder.close()
