"""`docs-assistant` as a person starts it: a process group of its own in an empty directory, its output in files."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.fakes import WORDS_SETTING

READY = "Ctrl-C stops it."
PATIENCE = 300.0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


WORDS_MODEL = {"DOCS_EMBEDDING_MODEL": WORDS_SETTING, "DOCS_TUNING__VECTOR_WEIGHT": '{"*": 0.2}'}
"""Vectors of letters count less than those of a model."""


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The machine's environment without its settings and proxies, with these settings.

    The embedding model of tests unless they say otherwise: the real one would take a minute in each.
    """
    proxies = {"http_proxy", "https_proxy", "all_proxy"}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DOCS_") and k.lower() not in proxies}
    model = {} if "DOCS_EMBEDDING_URL" in settings else WORDS_MODEL
    return kept | model | dict(settings)


class Program:
    """A running `docs-assistant` with these arguments; `command` starts it in another way."""

    def __init__(self, folder: Path, *arguments: str, command: Sequence[str] = (), **settings: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob("*.out")))
        self._out, self._err = folder / f"{number}.out", folder / f"{number}.err"
        self.folder, self.began = folder, time.monotonic()
        self.url = ""
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*(command or (sys.executable, "-P", "-m", "docs_assistant.cli")), *arguments],
                cwd=folder,
                env=environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def out(self) -> str:
        """Standard output so far."""
        return self._out.read_text("utf-8")

    @property
    def err(self) -> str:
        """Standard error so far."""
        return self._err.read_text("utf-8")

    def wait_for(self, text: str, seconds: float = PATIENCE) -> Program:
        """Returns once the text was printed; fails when the program ends without it."""
        deadline = time.monotonic() + seconds
        while text not in self.out + self.err:
            code = self.process.poll()
            if text in self.out + self.err:
                break
            assert code is None, f"ended with {code} before {text!r}:\n{self.out}\n{self.err}"
            assert time.monotonic() < deadline, f"no {text!r} in {seconds} s:\n{self.out}\n{self.err}"
            time.sleep(0.05)
        return self

    def wait_until_served(self, seconds: float = PATIENCE) -> Program:
        """Returns once /health answers, whatever it says."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                httpx.get(f"{self.url}/health", timeout=60)
            except httpx.TransportError:
                assert self.process.poll() is None, self.err
                assert time.monotonic() < deadline, self.err
                time.sleep(0.05)
            else:
                return self

    def press(self, *, group: bool) -> None:
        """Ctrl-C, without waiting for the end."""
        if self.process.poll() is None:
            (os.killpg if group else os.kill)(self.process.pid, signal.SIGINT)

    def end(self, number: int = signal.SIGTERM, *, group: bool = False, seconds: float = 120) -> int:
        """Send the signal, to the whole group as a terminal does or to the program alone, and wait for its end."""
        if self.process.poll() is None:
            (os.killpg if group else os.kill)(self.process.pid, number)
        return self.process.wait(seconds)

    def left_behind(self) -> list[str]:
        """What still runs of its process group; helpers that end with the program have a minute to notice."""
        for _ in range(600):
            listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True)
            rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
            if not (left := [row[2] for row in rows if row[0] == str(self.process.pid) and not row[1].startswith("Z")]):
                break
            time.sleep(0.1)
        return left

    def children(self) -> list[int]:
        """The processes that it started, without the helpers of multiprocessing."""
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
        rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
        own = [row for row in rows if row[1] == str(self.process.pid) and "from multiprocessing" not in row[2]]
        return [int(row[0]) for row in own]


@contextmanager
def program(folder: Path, *arguments: str, **settings: str) -> Iterator[Program]:
    """A running program that is gone at the end of the block, with all it started."""
    running = Program(folder, *arguments, **settings)
    try:
        yield running
    finally:
        try:
            running.end(group=True)
        finally:
            if running.left_behind():
                os.killpg(running.process.pid, signal.SIGKILL)
            running.process.wait(60)


@contextmanager
def service(folder: Path, command: str, /, *arguments: str, port: int = 0, **settings: str) -> Iterator[Program]:
    """`run` or `serve` on a free port, ready to be asked."""
    port = port or free_port()
    with program(folder, command, *arguments, "--port", str(port), **settings) as running:
        running.url = f"http://127.0.0.1:{port}"
        yield running.wait_for(READY) if command == "run" else running.wait_until_served()


def finished(folder: Path, *arguments: str, stdin: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself, with its output."""
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [sys.executable, "-P", "-m", "docs_assistant.cli", *arguments],
        cwd=folder,
        env=environment(settings),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
