"""Git repositories and archives as sources."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from app.core.errors import SitemapError, SourceUnavailable
from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from ingestion.crawl.fetch import Fetcher
    from ingestion.entry import Listing
    from ingestion.sources import Source, SourceReader
    from plugins.vcs.kept_files import Kept, KeptFiles


@hookimpl
def register_sources() -> Mapping[str, SourceReader]:
    """Returns the readers that list the pages of a [[source]] with `git` or `archive`."""
    return {"git": read_git, "archive": read_archived}


async def read_git(source: Source, fetcher: Fetcher) -> Listing:
    """The pages of a git repository. Raises `SourceUnavailable`."""
    from ingestion.sources import is_web
    from plugins.vcs.git import read_repository

    login = fetcher.login(source.git) if is_web(source.git) else {}
    return await _listed(source, fetcher, lambda kept: read_repository(source, login, kept))


async def read_archived(source: Source, fetcher: Fetcher) -> Listing:
    """The pages of an archive. Raises `SourceUnavailable`."""
    from plugins.vcs.archive import read_archive

    return await _listed(source, fetcher, lambda kept: read_archive(source, fetcher, kept))


async def _listed(source: Source, fetcher: Fetcher, read: Callable[[KeptFiles], Awaitable[Kept]]) -> Listing:
    from ingestion.crawl.directory import list_files
    from ingestion.entry import Skipped
    from plugins.vcs.kept_files import KeptFiles

    files = KeptFiles.of(source, fetcher.settings)
    async with files.locked():
        kept = await read(files)
        skipped = [Skipped(f"{source.place}: {name}", reason) for name, reason in kept.skipped.items()]
        try:
            return await asyncio.to_thread(list_files, source, fetcher.settings.languages, files.tree, skipped)
        except SitemapError as error:
            raise SourceUnavailable(str(error)) from error
