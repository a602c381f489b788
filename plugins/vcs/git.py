"""A git repository as a source: the files of one folder of one commit, fetched with the git program.

What others put into a repository runs nothing here: only regular files that are pages are written,
so there are no attributes, filters, links or submodules, and the commands that are used have no hooks.
The program runs without prompts and settings of users, and within limits of time and size.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from subprocess import DEVNULL, PIPE
from typing import TypeVar

from app.core.errors import SourceUnavailable
from app.core.log_message import masked
from ingestion.crawl.directory import is_page_name, pages_among
from ingestion.sources import Source
from plugins.vcs.kept_files import Kept, KeptFiles

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
        index: str = "index",
    ) -> bytes:
        """Returns the output of git, which works on the named index. Raises `SourceUnavailable` when it fails."""
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                f"--git-dir={self.directory}",
                *arguments,
                stdin=PIPE if given else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                env=self._environment() | {"GIT_INDEX_FILE": str(self.directory / index)},
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise SourceUnavailable(
                "the program git isn't installed: install it, or index the site that is built of the repository"
            ) from error
        try:
            output, told = await self._ended(arguments[0], process.communicate(given or None))
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # its helpers, too
                await process.wait()
        if process.returncode:
            raise SourceUnavailable(self._failure(arguments[0], told.decode(errors="replace")))
        return output

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

    def _environment(self) -> dict[str, str]:
        """The settings are in the environment: other users of this machine see the command line."""
        settings = [
            *_SETTINGS.items(),
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
_CHOSEN = "chosen"
"""The name of the index of those files that are read."""

_FILE_MODES = frozenset({"100644", "100755"})
_LINK_MODE = "120000"


async def read_repository(source: Source, login: Mapping[str, str], kept: KeptFiles) -> Kept:
    """Bring the files of the source's folder into the tree of `kept`. Raises `SourceUnavailable`.

    A commit that was read before costs one request.
    """
    git = Git((kept.directory / "git").absolute(), login, kept.size)
    ref, commit = await _tip(git, source)
    if (known := kept.known()).version == commit:
        return known
    fresh = not git.directory.exists()
    try:
        return await _read(git, ref, source, kept)
    except SourceUnavailable:
        kept.discard("git")  # it may be damaged: a program may end at any time
        if fresh:
            raise
        return await _read(git, ref, source, kept)


async def _tip(git: Git, source: Source) -> tuple[str, str]:
    names = [f"refs/heads/{source.branch}", f"refs/tags/{source.branch}"] if source.branch else ["HEAD"]
    peeled = [f"{name}^{{}}" for name in names]
    told = await git.run("ls-remote", "--quiet", "--", source.git, *names, *peeled)
    commits = {name: commit for commit, _, name in (line.partition("\t") for line in told.decode().splitlines())}
    for name in names:
        if name in commits:
            return name, commits.get(f"{name}^{{}}", commits[name])
    what = f"no branch or tag {source.branch}" if source.branch else "no commit"
    raise SourceUnavailable(f"{source.git} has {what}")


async def _read(git: Git, ref: str, source: Source, kept: KeptFiles) -> Kept:
    """Bring the commit at this reference here, without files where the server can leave them out, and then its pages."""
    if not git.directory.exists():
        await git.run("init", "--quiet", "--bare", "--template=", "--", str(git.directory))
        kept.discard(kept.tree.name)
        kept.tree.mkdir()
    # a partial clone remembers where its missing files are
    await git.run("config", "remote.origin.url", source.git)
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none")
    await git.run("fetch", *options, "--depth=1", "--", "origin", f"+{ref}:{_READ}")
    commit = (await git.run("rev-parse", "--verify", f"{_READ}^{{commit}}")).decode().strip()
    folder = [f"{source.folder}/"] if source.folder else []
    tree = await git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *folder)
    files, skipped = _listed(tree, "".join(folder))
    rows = "".join(f"{files[path.as_posix()]}\t{path}\0" for path in _pages(files)).encode()
    kept.change()
    # a tree of these files alone: git asks with one request for all of them that aren't here, and has no others to write
    kept.discard(f"{git.directory.name}/{_CHOSEN}")
    await git.run("update-index", "-z", "--index-info", given=rows, index=_CHOSEN)
    chosen = (await git.run("write-tree", "--missing-ok", index=_CHOSEN)).decode().strip()
    await git.run(f"--work-tree={kept.tree.absolute()}", "read-tree", "--reset", "-u", chosen)
    return kept.keep(Kept(commit, skipped=skipped))


def _listed(tree: bytes, folder: str) -> tuple[dict[str, str], dict[str, str]]:
    """(modes and names of objects, reasons of what is no file), both by path in the folder, of what `ls-tree` tells."""
    files: dict[str, str] = {}
    others: dict[str, str] = {}
    for row in filter(None, tree.split(b"\0")):
        facts, _, raw = row.partition(b"\t")
        mode = facts.decode("ascii").partition(" ")[0]
        path = raw.decode(errors="replace").removeprefix(folder)
        if mode in _FILE_MODES and path.encode() == raw.removeprefix(folder.encode()):
            files[path] = facts.decode("ascii")
        elif mode in _FILE_MODES:
            others[path] = "its name isn't UTF-8"
        elif mode == _LINK_MODE:
            others[path] = "is a symbolic link"
    return files, {path.as_posix(): others[path.as_posix()] for path in _pages(others)}


def _pages(paths: Iterable[str]) -> list[PurePosixPath]:
    return pages_among([path for path in map(PurePosixPath, paths) if is_page_name(path)])
