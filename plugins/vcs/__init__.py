"""Git repositories and archives as sources."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from app.core.errors import SitemapError, SourceUnavailable
from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from ingestion.crawl.fetch import Fetcher
    from ingestion.entry import Listing
    from ingestion.sources import Source, SourceReader
    from plugins.vcs.kept_files import KeptFiles, KeptListing


@hookimpl
def register_sources() -> Mapping[str, SourceReader]:
    """Returns the readers that list the pages of a [[source]] with `git` or `archive`."""
    return {"git": read_git, "archive": read_archived}


async def read_git(source: Source, fetcher: Fetcher) -> Listing:
    """The pages of a git repository. Raises `SourceUnavailable`."""
    from ingestion.sources import is_web
    from plugins.vcs.git import read_repository
    from plugins.vcs.kept_files import KeptFiles

    files = KeptFiles.of(source, fetcher.settings)
    async with files.locked():
        login = fetcher.login(source.git) if is_web(source.git) else {}
        read = await read_repository(source, login, fetcher.settings.tuning.crawl_max_bytes, files)
    return await _pages(source, fetcher, files, read)


async def read_archived(source: Source, fetcher: Fetcher) -> Listing:
    """The pages of an archive. Raises `SourceUnavailable`."""
    from plugins.vcs.archive import read_archive
    from plugins.vcs.kept_files import KeptFiles

    files = KeptFiles.of(source, fetcher.settings)
    async with files.locked():
        read = await read_archive(source, fetcher, files)
    return await _pages(source, fetcher, files, read)


async def _pages(source: Source, fetcher: Fetcher, kept: KeptFiles, read: KeptListing) -> Listing:
    from ingestion.crawl.directory import Found, digest_of, is_page_name, pages_among, pages_of
    from ingestion.entry import Skipped

    all_files = {PurePosixPath(path): Found(str(kept.texts / digest), digest) for path, digest in read.files.items()}
    files = {path: file for path, file in all_files.items() if is_page_name(path)}
    pages = frozenset(pages_among(files))
    included = digest_of((path, digest) for path, digest in read.files.items() if PurePosixPath(path) not in pages)
    skipped = [Skipped(f"{source.place}: {name}", reason) for name, reason in read.skipped.items()]
    try:
        return await asyncio.to_thread(pages_of, source, files, skipped, fetcher.settings.languages, included)
    except SitemapError as error:
        raise SourceUnavailable(str(error)) from error
