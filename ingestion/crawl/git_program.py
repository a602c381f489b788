"""Runs the git program: without prompts, settings of users, hooks and other transports, and within limits of time and size."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from types import MappingProxyType
from typing import IO, TypeVar

from app.core.errors import SourceUnavailable
from app.core.masking import masked

SECONDS = 900.0
"""How long one command may take."""
MOST_BYTES = 2 << 30
"""How large a kept source may get on disk."""

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
        """What git prints, or nothing if that goes `into` a file. Raises `SourceUnavailable` when it fails."""
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
