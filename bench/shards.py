"""A run of one process against the same run divided among several: `python -m bench.shards [--pages 5000] [--shards 4]`.

Each process is a real `docs-assistant ingest` into an index of its own on --opensearch, deleted in the end. The site and the
embeddings endpoint are a process of their own, which answers each page after --latency ms. Shown are the time, the CPU of all our
processes (without the site and OpenSearch), and whether pages, hashes and chunks are the same. Then one shard is killed with
`kill -9` in the middle, publishing is refused, and the shard is run again. On one machine, the shards share its cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from app.core.settings import Settings
from app.index import open_store
from bench.crawl import page
from bench.second_run import Bench, serve

INGEST = [sys.executable, "-m", "app.cli", "ingest", "--json"]
WORDS = [
    "pump",
    "valve",
    "sensor",
    "gauge",
    "pressure",
    "filter",
    "reset",
    "alarm",
    "install",
    "measure",
    "update",
    "network",
    "driver",
    "cable",
    "screen",
    # without words such as these, one of a hundred texts looks Norwegian
    "the",
    "with",
    "which",
    "through",
]
LONGEST = 1800.0  # seconds of a step
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Watch:
    """The CPU seconds of process groups, read from /proc all the time; what a process uses in its last moment is missing."""

    groups: set[int] = field(default_factory=set)
    _used: dict[int, float] = field(default_factory=dict)
    _ends: threading.Event = field(default_factory=threading.Event)

    @property
    def cpu(self) -> float:
        """The CPU seconds so far."""
        return sum(self._used.values())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch while the context lasts."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()

    def _run(self) -> None:
        while not self._ends.wait(0.3):
            for stat in Path("/proc").glob("[0-9]*/stat"):
                try:
                    told = stat.read_text().rpartition(")")[2].split()
                except OSError:  # it has just ended
                    continue
                if int(told[2]) in self.groups:
                    self._used[int(stat.parent.name)] = (int(told[11]) + int(told[12])) / _TICK


@dataclass
class Runs:
    """Runs of the command into one index."""

    bench: Bench
    folder: Path
    watch: Watch = field(default_factory=Watch)

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a run; its report goes to a file of this name."""
        settings = self.bench.settings
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "HOME": str(self.folder),
            "DOCS_STORE": settings.store,
            "DOCS_EMBEDDING_URL": settings.embedding_url,
            "DOCS_EMBEDDING_MODEL": settings.embedding_model,
            "DOCS_STORE_TIMEOUT": "60",
        }
        with (self.folder / f"{name}.json").open("wb") as report, (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*INGEST, *arguments, f"{self.bench.url}/sitemap.txt"],
                stdout=report, stderr=log, env=environment, cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        self.watch.groups.add(process.pid)
        return process

    def report(self, name: str) -> dict[str, Any]:
        """The report of a run that has ended."""
        told: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        return told

    def log(self, name: str) -> str:
        """What a run told on standard error."""
        return (self.folder / f"{name}.log").read_text()


def one_process(runs: Runs) -> float:
    """The seconds of a run of one process."""
    began = time.monotonic()
    _ended(runs.start("one"), runs, "one")
    return time.monotonic() - began


def shards(runs: Runs, draft: str, count: int) -> tuple[float, float]:
    """The seconds of a run of several processes, and those of the step that publishes."""
    began = time.monotonic()
    names = [f"{draft}-{number}" for number in range(1, count + 1)]
    started = [runs.start(name, "--draft", draft, "--shard", f"{at}/{count}") for at, name in enumerate(names, 1)]
    for name, process in zip(names, started, strict=True):
        _ended(process, runs, name)
    took = time.monotonic() - began
    published = [told["seconds"] for name in names if (told := runs.report(name))["published"]]
    assert len(published) == 1, "not exactly one shard has published"
    return took, published[0]


def killed(runs: Runs, count: int, all_: int, kept: Callable[[], int]) -> str:
    """A run of which one shard is killed when the draft has a third of `all_` pages and texts, in words."""
    draft, victim = "killed", 2
    started = {n: runs.start(f"k{n}", "--draft", draft, "--shard", f"{n}/{count}") for n in range(1, count + 1)}
    _until(lambda: kept() > all_ // 3)
    os.killpg(started[victim].pid, signal.SIGKILL)
    there = kept()
    for number, process in started.items():
        if number != victim:
            _ended(process, runs, f"k{number}")
    assert started[victim].wait(60) == -signal.SIGKILL
    refused = runs.start("refused", "--draft", draft, "--finish", str(count))
    code = refused.wait(LONGEST)
    assert code == 1, f"publishing without the shard ended with {code}"
    began = time.monotonic()
    asyncio.run(runs.bench.counts())
    _ended(runs.start("again", "--draft", draft, "--shard", f"{victim}/{count}"), runs, "again")
    asked = asyncio.run(runs.bench.counts())
    again = runs.report("again")
    return (
        f"  shard {victim} killed when {there / all_:.0%} of all pages and texts were kept; --finish: exit code {code}, "
        f"{runs.log('refused').strip().splitlines()[-1]}\n"
        f"  run again: {time.monotonic() - began:.1f} s, {asked['200'] + asked['304']} pages requested, {asked['texts']} "
        f"texts embedded; published {again['published']['pages']} pages, {again['published']['chunks']} chunks"
    )


def _ended(process: subprocess.Popen[bytes], runs: Runs, name: str) -> None:
    code = process.wait(LONGEST)
    if code:
        sys.exit(f"{name} ended with {code}: {runs.log(name)[-2000:]}")


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not reached():
        if time.monotonic() > deadline:
            sys.exit("the shards don't come on")
        time.sleep(0.2)


async def facts(settings: Settings) -> tuple[int, int, list[tuple[object, ...]]]:
    """What must be the same in both indexes."""
    store = open_store(settings)
    try:
        live = await store.live()
        pages = await live.pages()
        plain = [(page.url, page.hash, page.chunk_ids, page.same_as, page.translation_set) for page in pages]
        return live.info.pages, live.info.chunks, plain
    finally:
        await store.close()


def measure(arguments: argparse.Namespace, url: str, folder: Path) -> None:
    """Print all figures."""
    address = arguments.opensearch.replace("http", "opensearch", 1)
    base = Settings.load(None, embedding_url=f"{url}/v1", embedding_model="hashes")

    def bench_of(name: str) -> Bench:
        store = f"{address}/bench-shards-{uuid.uuid4().hex[:6]}-{name}"
        settings = base.model_copy(update={"store": store})
        return Bench(url, arguments.pages, settings, arguments.opensearch)

    one, several, third = (Runs(bench_of(name), folder) for name in ("one", "several", "killed"))
    try:
        with one.watch.running():
            alone = one_process(one)
        with several.watch.running():
            took, finishing = shards(several, "bench", arguments.shards)
        expected = asyncio.run(facts(one.bench.settings))
        same = asyncio.run(facts(several.bench.settings)) == expected
        print(f"{expected[0]} of {arguments.pages} pages, {expected[1]} chunks, {arguments.latency:g} ms for each page")
        print(f"  one process: {alone:.1f} s ({one.watch.cpu:.1f} s CPU)", flush=True)
        print(
            f"  {arguments.shards} shards: {took:.1f} s, {alone / took:.2f} x as fast ({several.watch.cpu:.1f} s CPU), of "
            f"which the step that publishes {finishing:.1f} s; same pages, hashes and chunks: {same}",
            flush=True,
        )
        if arguments.kill:
            one.bench.delete()
            several.bench.delete()
            told = killed(third, arguments.shards, sum(expected[:2]), lambda: _kept(third.bench, arguments.opensearch))
            print(f"{told}; same as of one process: {asyncio.run(facts(third.bench.settings)) == expected}")
    finally:
        for runs in (one, several, third):
            runs.bench.delete()


def _kept(bench: Bench, opensearch: str) -> int:
    """How many documents the draft has: one for each page that was read, and one for each text."""
    name = bench.settings.store.rsplit("/", 1)[1]
    found = httpx.get(f"{opensearch}/{name}-parts-*/_stats/indexing", trust_env=False, timeout=60).json()
    return int(found["_all"]["primaries"].get("indexing", {}).get("index_total", 0))


def small_page(number: int, pages: int) -> str:
    """A page of a few paragraphs, a tenth as long as `bench.crawl` makes them: about 3 chunks."""
    rng = random.Random(number)
    paragraphs = (" ".join(rng.choices(WORDS, k=60)) for _ in range(4))
    text = "".join(f"<h2 id=s{at}>Part {at} of {number}</h2><p>{words}.</p>" for at, words in enumerate(paragraphs))
    links = "".join(f"<li><a href=/p{rng.randint(0, pages)}>{rng.choice(WORDS)}</a>" for _ in range(20))
    return (
        f"<html lang=en><title>Page {number}</title><nav>{links}</nav><main><h1>Page {number}</h1>{text}</main></html>"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--latency", type=float, default=0.0, help="of the site, in ms")
    parser.add_argument("--small", action="store_true", help="short pages, for a busy machine")
    parser.add_argument("--kill", action="store_true", help="also kill a shard, and run it again")
    parser.add_argument("--opensearch", default="http://127.0.0.1:9200", metavar="URL")
    arguments = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    server = spawn.Process(
        target=serve,
        args=(arguments.pages, arguments.latency / 1000, theirs, small_page if arguments.small else page),
        daemon=True,
    )
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, f"http://127.0.0.1:{ours.recv()}", Path(folder))
    server.terminate()


if __name__ == "__main__":
    main()
