"""Pages are converted beside the event loop: few in a thread, many in processes, and none of them ends the run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ingestion.convert import ConversionError
from ingestion.workers import FIRST_IN_THREAD, Workers, processes


def where() -> tuple[int, str]:
    return os.getpid(), threading.current_thread().name


def end_the_process() -> None:
    os._exit(1)


def refuse(url: str, *, reason: str) -> None:
    raise ConversionError(f"{url} {reason}")


async def up(workers: Workers) -> None:
    """Until the processes work; while they start, the thread goes on."""
    async with asyncio.timeout(60):
        while (await workers.run(where))[0] == os.getpid():
            await asyncio.sleep(0.05)


async def test_few_are_done_in_a_thread_and_many_in_processes() -> None:
    """A nightly run over few changes pays for no process; from the given number on the loop's process is free."""
    async with Workers(first_in_thread=2) as workers:
        for _ in range(2):
            pid, thread = await workers.run(where)
            assert pid == os.getpid()
            assert thread.startswith("convert")
        await up(workers)
        others = {pid for pid, _ in await asyncio.gather(*(workers.run(where) for _ in range(8)))}
        assert os.getpid() not in others
        assert 1 <= len(others) <= processes()


def test_a_first_run_over_many_pages_starts_processes_at_once() -> None:
    """Few unknown pages stay in the thread for good; a whole new site doesn't begin there."""
    assert Workers.expecting(20).first_in_thread == FIRST_IN_THREAD
    assert Workers.expecting(1000).first_in_thread == 0


@pytest.mark.parametrize("first_in_thread", [0, 9])
async def test_errors_come_out_as_they_are(first_in_thread: int) -> None:
    """In a thread and from a process alike."""
    async with Workers(first_in_thread) as workers:
        if not first_in_thread:
            await up(workers)
        with pytest.raises(ConversionError, match=r"^a is empty$"):
            await workers.run(refuse, "a", reason="is empty")


async def test_a_page_that_ends_its_process_is_told_and_the_others_are_converted() -> None:
    """A crash inside a library costs one page: neither the run nor the pages that were converted beside it."""
    async with Workers(first_in_thread=0) as workers:
        await up(workers)
        done = await asyncio.gather(
            *(workers.run(end_the_process if n == 2 else where) for n in range(6)), return_exceptions=True
        )
        assert [n for n, result in enumerate(done) if isinstance(result, BaseException)] == [2]
        assert "ends the process" in str(done[2])
        await up(workers)


async def test_without_processes_the_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they can't be started every page is converted all the same."""
    monkeypatch.setattr("ingestion.workers._load", end_the_process)
    async with Workers(first_in_thread=0) as workers:
        for _ in range(40):
            assert (await workers.run(where))[0] == os.getpid()
            await asyncio.sleep(0.05)


KILLED = """
import asyncio, os, sys
from ingestion.workers import Workers

async def main():
    async with Workers(first_in_thread=0) as workers:
        while (pid := await workers.run(os.getpid)) == os.getpid():
            await asyncio.sleep(0.05)
        print(pid, flush=True)
        await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_the_processes_of_a_killed_program_end_too(tmp_path: Path) -> None:
    """Nothing waits for work that will never come."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED, "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout is not None
        worker = int(program.stdout.readline())
        program.kill()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()
