"""Git repositories as sources."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.core.errors import SitemapError, SourceUnavailable
from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from ingestion.crawl.fetch import Fetcher
    from ingestion.entry import Listing
    from ingestion.sources import Source, SourceReader


@hookimpl
def register_sources() -> Mapping[str, SourceReader]:
    """Returns the reader that lists the pages of a [[source]] with `git`."""
    return {"git": read_git}


async def read_git(source: Source, fetcher: Fetcher) -> Listing:
    """The pages of a git repository. Raises `SourceUnavailable`."""
    from ingestion.crawl.directory import list_files
    from ingestion.entry import Skipped
    from ingestion.sources import is_web
    from plugins.vcs.git import read_repository
    from plugins.vcs.kept_files import KeptFiles

    login = fetcher.login(source.git) if is_web(source.git) else {}
    files = KeptFiles.of(source, fetcher.settings)
    async with files.locked():
        kept = await read_repository(source, login, files)
        skipped = [Skipped(f"{source.place}: {name}", reason) for name, reason in kept.skipped.items()]
        try:
            return await asyncio.to_thread(list_files, source, fetcher.settings.languages, files.tree, skipped)
        except SitemapError as error:
            raise SourceUnavailable(str(error)) from error
