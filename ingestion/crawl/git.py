"""A git repository as a source: the files of one folder of one commit, fetched with the git program.

What others put into a repository runs nothing here: no work tree is made, so there are no hooks, filters, links or submodules.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from app.core.errors import SourceUnavailable
from ingestion.crawl.beside import beside
from ingestion.crawl.directory import is_page_name, most_of, pages_among
from ingestion.crawl.git_program import NO_SETTINGS, Git
from ingestion.crawl.kept_files import KeptFiles, KeptListing
from ingestion.sources import Source

_READ = "refs/docs/read"
_FILE_MODES = frozenset({"100644", "100755"})
_LINK_MODE = "120000"


async def read_repository(source: Source, login: Mapping[str, str], most: int, kept: KeptFiles) -> KeptListing:
    """The files of the source's folder, those up to `most` bytes, which are then in `kept`. Raises `SourceUnavailable`.

    A commit that was read before costs one request, and no file is read.
    """
    git = Git(kept.directory / "git", login, kept.size)
    ref, commit = await _tip(git, source)
    known = kept.listing()
    if known.version == commit:
        return known
    repository = _Repository(git, source, kept, most)
    fresh = not git.directory.exists()
    try:
        commit = await repository.fetch(ref)
        files, skipped = await repository.read(commit)
    except SourceUnavailable:
        kept.discard("git")  # it may be damaged: a program may end at any time
        if fresh:
            raise
        commit = await repository.fetch(ref)
        files, skipped = await repository.read(commit)
    listing = KeptListing(commit, files=files, skipped=skipped)
    kept.keep(listing)
    return listing


async def _tip(git: Git, source: Source) -> tuple[str, str]:
    """The reference of the branch or tag, and its commit."""
    names = [f"refs/heads/{source.branch}", f"refs/tags/{source.branch}"] if source.branch else ["HEAD"]
    peeled = [f"{name}^{{}}" for name in names]
    told = await git.run("ls-remote", "--quiet", "--", source.git, *names, *peeled)
    found = {name: commit for commit, _, name in (line.partition("\t") for line in told.decode().splitlines())}
    for name in names:
        if name in found:
            return name, found.get(f"{name}^{{}}", found[name])
    what = f"no branch or tag {source.branch}" if source.branch else "no commit"
    raise SourceUnavailable(f"{source.git} has {what}")


@dataclass(frozen=True, slots=True)
class _Repository:
    """Our copy of one commit, without the files that aren't pages."""

    git: Git
    source: Source
    kept: KeptFiles
    most: int

    async def fetch(self, ref: str) -> str:
        """Bring the commit at this reference here, without files where the server can leave them out; gives its name."""
        if not self.git.directory.exists():
            await self.git.run("init", "--quiet", "--bare", "--template=", "--", str(self.git.directory))
        # a partial clone remembers where its missing files are
        await self.git.run("config", "remote.origin.url", self.source.git)
        await self._fetch("--depth=1", "--", "origin", f"+{ref}:{_READ}")
        return (await self.git.run("rev-parse", "--verify", f"{_READ}^{{commit}}")).decode().strip()

    async def read(self, commit: str) -> tuple[dict[str, str], dict[str, str]]:
        """Keep the commit's pages; (digests by path, reasons of those left out by path)."""
        folder = [f"{self.source.folder}/"] if self.source.folder else []
        tree = await self.git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *folder)
        files, skipped = _listed(tree, "".join(folder))
        pages = _pages(files)
        others = beside(pages, set(map(PurePosixPath, files)) - set(pages))
        paths = {path.as_posix(): files[path.as_posix()] for path in (*pages, *others)}
        new = sorted(set(paths.values()) - self.kept.digests())
        if new:
            await self._fetch_missing(new)
            async with self._contents(_lines(new)) as contents:
                await asyncio.to_thread(self._keep, contents, self._limits(paths))
        there = self.kept.digests()
        large = (path for path in pages if paths[path.as_posix()] not in there)
        skipped |= {path.as_posix(): f"is larger than {most_of(path, self.most):,} bytes" for path in large}
        return {path: name for path, name in paths.items() if name in there}, skipped

    async def _fetch_missing(self, names: Sequence[str]) -> None:
        """Bring those of the objects here that aren't, in one request: git would ask for each of them alone."""
        # asked for objects by name, git would fetch the missing ones
        here = await self.git.run("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
        if missing := sorted(set(names) - set(here.decode("ascii").split())):
            # a server that knows of a commit here leaves out what belongs to it
            alone = {"fetch.negotiationAlgorithm": "noop"}
            await self._fetch("--stdin", "origin", given=_lines(missing), settings=alone)

    async def _fetch(self, *arguments: str, given: bytes = b"", settings: Mapping[str, str] = NO_SETTINGS) -> None:
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none")
        await self.git.run("fetch", *options, *arguments, given=given, settings=settings)

    @asynccontextmanager
    async def _contents(self, names: bytes) -> AsyncIterator[IO[bytes]]:
        """What `cat-file` writes of these objects, in a file: together they may be larger than memory."""
        with self.kept.temporary("contents") as contents:
            await self.git.run("cat-file", "--batch", given=names, into=contents)
            contents.seek(0)
            yield contents

    def _limits(self, paths: Mapping[str, str]) -> Mapping[str, int]:
        """How large each object may be: the same may be the content of many files."""
        found: dict[str, int] = {}
        for path, name in paths.items():
            found[name] = max(found.get(name, 0), most_of(PurePosixPath(path), self.most))
        return found

    def _keep(self, contents: IO[bytes], limits: Mapping[str, int]) -> None:
        for name, size in _headers(contents):
            if size <= limits[name]:
                self.kept.write(name, contents.read(size))
            else:
                contents.seek(size, os.SEEK_CUR)
            contents.seek(1, os.SEEK_CUR)  # each ends with a line break


def _lines(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def _headers(contents: IO[bytes]) -> Iterator[tuple[str, int]]:
    """(name, size) of each object; its bytes are to be read meanwhile."""
    while line := contents.readline():
        name, kind, size = line.decode("ascii", "replace").split()[:3] if line.count(b" ") == 2 else ("", "", "")
        if kind != "blob":
            raise SourceUnavailable(f"git has no file {line.decode(errors='replace').strip()[:100]}")
        yield name, int(size)


def _listed(tree: bytes, folder: str) -> tuple[dict[str, str], dict[str, str]]:
    """(names of objects, reasons of what is no file), both by path in the folder, of what `ls-tree` tells."""
    files: dict[str, str] = {}
    others: dict[str, str] = {}
    for row in filter(None, tree.split(b"\0")):
        facts, _, raw = row.partition(b"\t")
        mode, _, name = facts.decode("ascii").split()
        path = raw.decode(errors="replace").removeprefix(folder)
        if mode in _FILE_MODES and path.encode() == raw.removeprefix(folder.encode()):
            files[path] = name
        elif mode in _FILE_MODES:
            others[path] = "its name isn't UTF-8"
        elif mode == _LINK_MODE:
            others[path] = "is a symbolic link"
    return files, {path.as_posix(): others[path.as_posix()] for path in _pages(others)}


def _pages(paths: Iterable[str]) -> list[PurePosixPath]:
    return pages_among(path for path in map(PurePosixPath, paths) if is_page_name(path))
