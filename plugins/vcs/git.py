"""A git repository as a source: the files of one folder of one commit, fetched with the git program.

What others put into a repository runs nothing here: no work tree is made, so there are no hooks, filters, links or submodules.
The program runs without prompts and settings of users, and within limits of time and size.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from subprocess import DEVNULL, PIPE
from types import MappingProxyType
from typing import IO, TypeVar

from app.core.errors import SourceUnavailable
from app.core.log_message import masked
from ingestion.crawl.directory import beside, is_page_name, most_of, pages_among
from ingestion.sources import Source
from plugins.vcs.kept_files import KeptFiles, KeptListing

SECONDS = 900.0
"""The time limit of one command."""
MOST_BYTES = 2 << 30
"""The limit of a kept source on disk."""

_INTERVAL = 0.5
_LONGEST_MESSAGE = 500
_INHERITED = frozenset(
    {"PATH", "USER", "TMPDIR", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "no_proxy", "NO_PROXY"}
    | {"SYSTEMROOT"}
)
"""Variables that git gets; the others have secrets of this program, or would change what git does."""
_ENVIRONMENT = {
    # no .netrc with passwords for hosts: without HOME, libcurl reads that of the user's entry in passwd, as ssh its keys
    "HOME": os.devnull,
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:file",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_SSH = "ssh -o BatchMode=yes -o ConnectTimeout=30"
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "gc.autoDetach": "false",
    "http.followRedirects": "false",  # a login, and the right to connect, are for the host that was named
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}
_LOGIN = ("terminal prompts disabled", "Authentication failed", "returned error: 401", "returned error: 403")

Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class Git:
    """Runs commands on the bare repository in `directory`. `login` are headers for requests, `size` measures what it fills."""

    directory: Path
    login: Mapping[str, str]
    size: Callable[[], int]

    async def run(
        self,
        *arguments: str,
        given: bytes = b"",
        into: IO[bytes] | None = None,
        settings: Mapping[str, str] = NO_SETTINGS,
    ) -> bytes:
        """Returns the output of git, or nothing if it goes `into` a file. Raises `SourceUnavailable` when it fails."""
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                f"--git-dir={self.directory}",
                *arguments,
                stdin=PIPE if given else DEVNULL,
                stdout=into or PIPE,
                stderr=PIPE,
                env=self._environment(settings),
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise SourceUnavailable("the program git isn't installed: install it, or use `archive`") from error
        try:
            output, told = await self._ended(arguments[0], process.communicate(given or None))
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # its helpers, too
                await process.wait()
        if process.returncode:
            raise SourceUnavailable(self._failure(arguments[0], told.decode(errors="replace")))
        return output or b""

    async def _ended(self, command: str, work: Coroutine[None, None, Output]) -> Output:
        until = time.monotonic() + SECONDS
        running = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({running}, timeout=_INTERVAL))[0]:
                if time.monotonic() > until:
                    raise SourceUnavailable(f"git {command} did not end within {SECONDS:.0f} s")
                if await asyncio.to_thread(self.size) > MOST_BYTES:
                    raise SourceUnavailable(f"it has more than {MOST_BYTES >> 20:,} MB: name a smaller `folder`")
            return running.result()
        finally:
            running.cancel()

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """The settings are in the environment: other users of this machine see the command line."""
        settings = [
            *_SETTINGS.items(),
            *more.items(),
            *(("http.extraHeader", f"{name}: {self.login[name]}") for name in self.login),
        ]
        numbered = {
            "GIT_CONFIG_COUNT": str(len(settings)),
            **{f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(settings)},
            **{f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(settings)},
        }
        inherited = {name: value for name, value in os.environ.items() if name in _INHERITED}
        return {"GIT_SSH_COMMAND": _SSH, **inherited, **_ENVIRONMENT, **numbered}

    def _failure(self, command: str, told: str) -> str:
        lines = [line for line in told.splitlines() if line.startswith(("fatal:", "error:", "remote:", "ssh:"))]
        said = " ".join(masked("; ".join(lines) or told).split())[:_LONGEST_MESSAGE]
        for value in self.login.values():
            said = said.replace(value, "…")
        if any(sign in told for sign in _LOGIN):
            advice = "check its `headers`" if self.login else "if it isn't public, set `headers` of its source"
            said = f"{said}: the repository wants a login, or doesn't exist; {advice}"
        elif "returned error: 30" in told:
            said = f"{said}: it redirects; give the address that it redirects to (perhaps ending in .git)"
        return f"git {command} failed ({said})"


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
    commits = {name: commit for commit, _, name in (line.partition("\t") for line in told.decode().splitlines())}
    for name in names:
        if name in commits:
            return name, commits.get(f"{name}^{{}}", commits[name])
    what = f"no branch or tag {source.branch}" if source.branch else "no commit"
    raise SourceUnavailable(f"{source.git} has {what}")


@dataclass(frozen=True, slots=True)
class _Repository:
    """Copy of one commit, without the files that aren't pages."""

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
        """Yields a file with the output of `cat-file` for these objects: together they may be larger than memory."""
        with self.kept.temporary("contents") as contents:
            await self.git.run("cat-file", "--batch", given=names, into=contents)
            contents.seek(0)
            yield contents

    def _limits(self, paths: Mapping[str, str]) -> Mapping[str, int]:
        """Returns the size limit of each object: the same may be the content of many files."""
        limits: dict[str, int] = {}
        for path, name in paths.items():
            limits[name] = max(limits.get(name, 0), most_of(PurePosixPath(path), self.most))
        return limits

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
    return pages_among([path for path in map(PurePosixPath, paths) if is_page_name(path)])
