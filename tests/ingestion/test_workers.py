"""Pages are converted in processes with limits: what one of them does there costs no other page and no run."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import WorkersUnavailable
from ingestion import workers as module
from ingestion.errors import ConversionError
from ingestion.workers import Workers, processes


def where() -> int:
    return os.getpid()


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    os._exit(1)


def fill() -> int:
    return len(bytearray(400 << 20))


def hang() -> None:
    re.match("(a+)+$", "a" * 60 + "b")


def refuse(url: str, *, reason: str) -> None:
    raise ConversionError(f"{url} {reason}")


def crash_unless_first(seen: set[int] = set()) -> int:  # noqa: B006  # what a process remembers
    if seen:
        crash()
    seen.add(1)
    return os.getpid()


class OddError(Exception):
    """One that can't be made again from its message."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def odd() -> None:
    raise OddError("one", "two")


async def test_every_call_is_done_in_another_process_from_the_first_on() -> None:
    """A page that ends a process never ends the one of the run."""
    async with Workers() as workers:
        found = {await workers.run(where), *await asyncio.gather(*(workers.run(where) for _ in range(8)))}
    assert os.getpid() not in found
    assert 1 <= len(found) <= processes()


async def test_what_a_page_does_to_its_process_costs_that_page_alone() -> None:
    """A crash, an end, too much memory and too much time each have a reason, and all calls beside them their results."""
    reasons = {
        crash: r"ends the process that converts it \(SIGSEGV\)",
        leave: r"ends the process that converts it \(exit code 1\)",
        fill: "needs more than 300 MB of memory",
        hang: "takes longer than 1 s",
    }
    async with Workers(seconds=1, memory=300 << 20) as workers:
        calls = [work for bad in reasons for work in (where, bad, where)]
        done = await asyncio.gather(*(workers.run(work) for work in calls), return_exceptions=True)
        for work, result in zip(calls, done, strict=True):
            if work in reasons:
                with pytest.raises(ConversionError, match=reasons[work]):
                    raise result if isinstance(result, BaseException) else AssertionError
            else:
                assert isinstance(result, int)
        assert await workers.run(where)


async def test_processes_that_end_while_others_start_each_have_their_own_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`multiprocessing` reads the exit codes of all processes whenever one starts; what reads a code second has 255."""
    read = forkserver.read_signed
    readers: dict[int, threading.Event] = {}

    def second_first(descriptor: int) -> int:
        if second := readers.pop(descriptor, None):
            try:
                return read(descriptor)
            finally:
                second.set()
        readers[descriptor] = second = threading.Event()
        second.wait(0.1)
        readers.pop(descriptor, None)
        return read(descriptor)

    monkeypatch.setattr(forkserver, "read_signed", second_first)
    async with Workers() as workers:
        done = await asyncio.gather(*(workers.run(crash) for _ in range(8)), return_exceptions=True)
    assert {str(error) for error in done} == {"ends the process that converts it (SIGSEGV): it is too large or damaged"}


async def test_a_page_is_not_blamed_for_what_others_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What crashes in a process that did other calls is tried once more in a new one."""
    monkeypatch.setattr("ingestion.workers._MOST_PROCESSES", 1)
    async with Workers() as workers:
        first = await workers.run(crash_unless_first)
        assert await workers.run(crash_unless_first) != first


SERVE = module._serve


def late(starts: Path, *arguments: Any) -> None:
    """As the process, but it starts once the file is there."""
    while not starts.exists():
        time.sleep(0.01)
    SERVE(*arguments)


def without_folder(_: Any) -> None:
    raise FileNotFoundError(2, "No usable temporary directory")


def leave_at_once(*_: Any) -> None:
    os._exit(3)


async def test_a_process_that_starts_late_costs_no_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A busy machine is slow, and loses nothing: the process is waited for, and the log tells of it."""
    monkeypatch.setattr("ingestion.workers._START", 0.05)
    monkeypatch.setattr("ingestion.workers._serve", partial(late, tmp_path / "started"))
    async with Workers() as workers:
        call = asyncio.create_task(workers.run(where))
        while not (caplog.records or call.done()):
            await asyncio.sleep(0.01)
        (tmp_path / "started").touch()
        assert await call
    assert "isn't started after" in caplog.text


async def test_a_process_that_cannot_start_ends_the_run_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every other page would fail too, and a page that isn't converted must not look as if the page was the cause."""
    monkeypatch.setattr("ingestion.workers._serve", leave_at_once)
    async with Workers() as workers:
        with pytest.raises(WorkersUnavailable, match=r"converts pages \(exit code 3\)"):
            await workers.run(where)
    monkeypatch.setattr(module, "_serve", SERVE)
    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", without_folder)
    async with Workers() as workers:
        with pytest.raises(WorkersUnavailable, match=r"converts pages: .*No usable temporary directory"):
            await workers.run(where)


async def test_errors_come_out_as_they_are() -> None:
    """Also one that can't be sent between processes."""
    async with Workers() as workers:
        with pytest.raises(ConversionError, match=r"^a is empty$"):
            await workers.run(refuse, "a", reason="is empty")
        with pytest.raises(ConversionError, match=r"OddError: one and two"):
            await workers.run(odd)


KILLED = """
import asyncio, os, time
from ingestion.workers import Workers

async def main():
    async with Workers() as workers:
        print(await workers.run(os.getpid), flush=True)
        await workers.run(time.sleep, 600)

{guard}asyncio.run(main())
"""


def program(folder: Path, text: str) -> subprocess.Popen[str]:
    script = folder / "program.py"
    script.write_text(text, "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def test_the_processes_of_a_killed_program_end_too(tmp_path: Path) -> None:
    """Nothing waits for work that will never come, or goes on with work that nobody waits for."""
    with program(tmp_path, KILLED.format(guard="if __name__ == '__main__': ")) as running:
        assert running.stdout is not None
        worker = int(running.stdout.readline())
        running.kill()
    deadline = time.monotonic() + 120
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_a_program_whose_processes_cannot_start_is_told_why(tmp_path: Path) -> None:
    """Each process imports the program: one that indexes at once would do so in all of them."""
    with program(tmp_path, KILLED.format(guard="")) as running:
        _, errors = running.communicate(timeout=240)
    assert "No process can be started that converts pages" in errors
    assert "if __name__ == '__main__':" in errors


COPIED = r"""
import asyncio, json, threading, sys
from ingestion.workers import Workers, start_early

async def main():
    async with Workers() as workers:
        print(await workers.run(eval, "hasattr(__import__('json'), 'ours')"))

if __name__ == "__main__":
    json.ours = True
    if "beside" in sys.argv:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    start_early()
    asyncio.run(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("beside", [[], ["beside"]])
def test_processes_are_copies_of_a_program_without_threads(tmp_path: Path, beside: list[str]) -> None:
    """They have what it has imported. Where it has threads, whose locks would stay locked, they begin as a new Python."""
    script = tmp_path / "program.py"
    script.write_text(COPIED, "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, script, *beside], capture_output=True, text=True, check=True, env=environment
    )
    assert (done.stdout, done.stderr) == (f"{not beside}\n", "")


BLOCKED = r"""
import asyncio, os, re, signal, sys
from multiprocessing import forkserver
from pathlib import Path
from ingestion.workers import Workers

async def main():
    async with Workers() as workers:
        await workers.run(os.getpid)
        status = Path(f"/proc/{forkserver._forkserver._forkserver_pid}/status").read_text()
        print(int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16) >> (signal.SIGINT - 1) & 1)
        print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ctrl_c_does_not_reach_the_process_that_forks_the_others(tmp_path: Path) -> None:
    """It printed a traceback from the middle of an import; the program itself still gets the signal."""
    with program(tmp_path, BLOCKED) as running:
        assert running.communicate(timeout=240)[0].split() == ["1", "False"]


def test_only_workers_import_what_converts_pages() -> None:
    """A run in which nothing changed starts none of them, so it imports no parser and no converter."""
    code = "import sys, ingestion.run, ingestion.formats as f; f.binary_types(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = "html_to_markdown langdetect.detector lxml.html markdown_it ingestion.convert.html.page"
    assert not set(heavy.split()) & set(done.stdout.split())
