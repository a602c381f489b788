"""How much memory, disk and CPU an installation needs: `python -m bench.sizing [FAKE_LLM]`, with the benchmark's fake_llm.py.

For each number of pages: a run over a directory, `docs-assistant serve` on its index, and questions
without a language model. With FAKE_LLM also 200 paced streams at once, for the memory of each.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench.crawl import page
from tests.end_to_end.program import environment, free_port, service

ROOT = Path(__file__).parents[1]
QUESTIONS = 200
STREAMS = 200
QUESTION = "Which setting changes the size of a volume?"
STREAMED = "Which setting changes the port of the service?"


def resident(pid: int) -> int:
    """Resident memory of a process in MB."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text("ascii"))[0]) // 1024


def cpu(process: int | str) -> float:
    """Seconds of CPU that a process has used, in all threads, or a thread such as `self/task/4711`."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def markdown(number: int, pages: int) -> str:
    """The page of the crawler's benchmark without what surrounds its article."""
    article = page(number, pages).partition("<article class=md-content__inner>")[2].partition("</article>")[0]
    text = re.sub(r"<h(\d)[^>]*>", lambda found: f"\n\n{'#' * int(found[1])} ", article)
    return re.sub(r"<[^>]+>", "\n\n", text)


def write_site(folder: Path, pages: int) -> Path:
    """A directory of so many pages."""
    site = folder / "site"
    site.mkdir()
    for number in range(pages):
        (site / f"p{number}.md").write_text(markdown(number, pages), "utf-8")
    return site


def index(folder: Path, site: Path, settings: dict[str, str]) -> str:
    """Index a directory; chunks, seconds, memory and disk."""
    sources = folder / "sources.toml"
    sources.write_text(f'[[source]]\nurl = "https://docs.example.org/"\ndirectory = {json.dumps(str(site))}\n', "utf-8")
    command = [sys.executable, "-m", "docs_assistant.cli", "ingest", str(sources)]
    began = time.monotonic()
    run = subprocess.run(command, cwd=folder, env=environment(settings), check=False, capture_output=True, text=True)
    assert run.returncode in {0, 2}, run.stderr
    seconds, told = time.monotonic() - began, run.stdout + run.stderr
    chunks = re.findall(r"(\d+) chunks", told.replace(",", ""))[-1]
    memory = re.findall(r"Memory: at most (\d+)", told)[-1]
    disk = sum(file.stat().st_size for file in (folder / "data").rglob("*") if file.is_file()) / 1e6
    return f"{chunks} chunks | {seconds:.0f} s | {memory} MB | {disk:.0f} MB"


async def ask(url: str, times: int) -> None:
    """Questions one after another; the middle of their times is what a reader waits."""
    body = {"model": "docs-assistant", "messages": [{"role": "user", "content": QUESTION}]}
    async with aiohttp.ClientSession() as session:
        for _ in range(times):
            async with session.post(f"{url}/v1/chat/completions", json=body) as response:
                assert response.status == 200, await response.text()
                await response.read()


def row(pages: int) -> str:
    """One row of the table."""
    settings = {"DOCS_LOG_LEVEL": "warning", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as directory:
        indexed = index(Path(directory), write_site(Path(directory), pages), settings)
        with service(Path(directory), "serve", **settings) as running:
            asyncio.run(ask(running.url, 1))
            pid = running.process.pid
            first, used, began = resident(pid), cpu(pid), time.monotonic()
            asyncio.run(ask(running.url, QUESTIONS))
            took = (time.monotonic() - began) / QUESTIONS * 1000
            asked = f"{first} MB | {resident(pid)} MB | {(cpu(pid) - used) / QUESTIONS * 1000:.1f} ms | {took:.0f} ms"
    return f"| {pages} | {indexed} | {asked} |"


@dataclass
class Outcome:
    """What clients saw."""

    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Load:
    """A service and the model server behind it."""

    session: aiohttp.ClientSession
    url: str
    llm: str

    async def control(self, **options: Any) -> None:
        """Set the model server, and forget its records."""
        for path, body in (("control", options), ("reset", {})):
            async with self.session.post(f"{self.llm}/{path}", json=body) as response:
                response.raise_for_status()

    async def ask(self, client: int, outcome: Outcome) -> None:
        """One answer, streamed and looked at."""
        try:
            async with self.session.post(f"{self.url}/v1/chat/completions", json=question(client)) as response:
                body = await response.read()
            if fault := wrong(response.status, body.decode()):
                outcome.errors.append(fault)
        except (aiohttp.ClientError, TimeoutError) as error:
            outcome.errors.append(repr(error))


def question(client: int) -> Mapping[str, Any]:
    """A request unlike all others."""
    messages = [{"role": "system", "content": f"For client {client}."}, {"role": "user", "content": STREAMED}]
    return {"model": "docs-assistant", "stream": True, "messages": messages}


def wrong(status: int, body: str) -> str:
    """What is wrong with a stream; empty where it is whole."""
    if status != 200 or '"error"' in body or '"extractive":true' in body:
        return f"{status} {body[:300]}"
    text = "".join(json.loads(f'"{piece}"') for piece in re.findall(r'"delta":\{"content":"((?:[^"\\]|\\.)*)"', body))
    whole = text.startswith("BEGIN ") and "THE-END" in text and body.endswith("data: [DONE]\n\n")
    return "" if whole and '"sources":[{' in body else f"not whole: {text[:100]!r} … {body[-100:]!r}"


@contextmanager
def model(fake_llm: Path) -> Iterator[str]:
    """The model server, at this address."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(fake_llm), str(port)], stdout=subprocess.DEVNULL)
    try:
        time.sleep(1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


async def streams(url: str, llm: str, pid: int) -> str:
    """Memory with so many answers under way, and before."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120)) as session:
        load, outcome = Load(session, url, llm), Outcome()
        await load.control(tps=0, tokens=60, rules=[], record=False)
        await asyncio.gather(*(load.ask(number, outcome) for number in range(20)))
        before = resident(pid)
        await load.control(tps=6, tokens=120, rules=[], record=False)
        asked = [asyncio.create_task(load.ask(number, outcome)) for number in range(STREAMS)]
        most = before
        while not all(task.done() for task in asked):
            most = max(most, resident(pid))
            await asyncio.sleep(0.2)
    each = (most - before) * 1024 / STREAMS
    return f"{STREAMS} answers at once: {before} MB before, {most} MB at most, {each:.0f} KB each; errors: {outcome.errors[:2]}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fake_llm", type=Path, nargs="?")
    parser.add_argument("--pages", type=int, nargs="+", default=[25, 200, 1000])
    arguments = parser.parse_args()
    print("| pages | chunks | run | its memory | disk | service, first | after 200 questions | CPU | time |")
    for pages in arguments.pages:
        print(row(pages), flush=True)
    if arguments.fake_llm:
        with tempfile.TemporaryDirectory() as directory, model(arguments.fake_llm.resolve()) as llm:
            settings = {"DOCS_LLM_URL": f"{llm}/v1", "DOCS_LLM_MODEL": "fake", "PYTHONPATH": str(ROOT)}
            index(Path(directory), ROOT / "docs", settings)
            with service(Path(directory), "serve", DOCS_LOG_LEVEL="warning", **settings) as running:
                print(asyncio.run(streams(running.url, llm, running.process.pid)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
