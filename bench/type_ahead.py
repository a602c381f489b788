"""How fast the search as you type is: `python -m bench.type_ahead [--store opensearch://127.0.0.1:9200/NAME] [--embedding NAME]`.

Indexes this repository's documentation, repeated with some of its words exchanged, until there are about 2,000 chunks, and starts
`docs-assistant serve`. Then 20 clients type headings of the documentation: first as readers do, with a pause after each letter, and
one request after each pause longer than that of the interface; then in a hot loop, without pauses. Clients and service share the
machine. The exit code is 1 if p95 of the typing readers is 50 ms or more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from bench.sizing import cpu
from tests.end_to_end.program import environment, service

ROOT = Path(__file__).parents[1]
COPIES = 5  # of the documentation: about 2,000 chunks
CLIENTS = 20
BOUND = 50.0  # ms
LETTER = (0.08, 0.32)  # seconds between two letters
DEBOUNCE = 0.12  # seconds that the interface waits for the next letter
READING = 2.0  # seconds that a reader looks at the results of a finished query
EXCHANGED = 0.15  # share of the words
HEADING = re.compile(r"^#{1,4} +(.+?)(?: *\{#.*)?$", re.MULTILINE)
WORD = re.compile(r"(?<![\w`/.-])[^\W\d_]{4,}(?![\w`/.-])")


def write_site(folder: Path, copies: int) -> list[str]:
    """A directory of the documentation in so many versions; returns its headings."""
    texts = {
        path.relative_to(ROOT / "docs"): path.read_text("utf-8") for path in (ROOT / "docs").glob("[a-z][a-z]/*.md")
    }
    words = {
        code: [w for path, text in texts.items() if path.parts[0] == code for w in WORD.findall(text)]
        for code in ("cs", "en")
    }
    chance = random.Random(1)
    for copy in range(copies):
        for path, text in texts.items():
            others = words[path.parts[0]]
            varied = WORD.sub(
                lambda found, others=others: chance.choice(others) if chance.random() < EXCHANGED else found[0], text
            )
            target = folder / path.parts[0] / f"part-{copy}" / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(varied if copy else text, "utf-8")
    return sorted({heading for text in texts.values() for heading in HEADING.findall(text)})


def index(folder: Path, settings: dict[str, str]) -> tuple[int, list[str]]:
    """Index enough copies; the number of chunks and the headings."""
    site, sources = folder / "site", folder / "sources.toml"
    headings = write_site(site, COPIES)
    sources.write_text(f'[[source]]\nurl = "https://docs.example.org/"\ndirectory = {json.dumps(str(site))}\n', "utf-8")
    command = [sys.executable, "-m", "app.cli", "ingest", str(sources)]
    run = subprocess.run(command, cwd=folder, env=environment(settings), check=False, capture_output=True, text=True)
    assert run.returncode in {0, 2}, run.stderr
    return int(re.findall(r"(\d+) chunks", (run.stdout + run.stderr).replace(",", ""))[-1]), headings


def typed(heading: str, chance: random.Random, *, hot: bool) -> Iterator[tuple[str, float]]:
    """What stands in the field whenever the interface asks, and the seconds before that."""
    waited = 0.0
    for end in range(1, len(heading) + 1):
        pause = 0.0 if hot else chance.uniform(*LETTER)
        waited += pause
        if hot or pause > DEBOUNCE or end == len(heading):
            yield heading[:end], waited
            waited = 0.0


async def client(
    session: aiohttp.ClientSession, number: int, headings: list[str], until: float, *, hot: bool
) -> list[float]:
    """One reader; the milliseconds of each search."""
    chance, times = random.Random(number), list[float]()
    if not hot:
        await asyncio.sleep(chance.uniform(0, READING))
    while time.monotonic() < until:
        for text, pause in typed(chance.choice(headings), chance, hot=hot):
            await asyncio.sleep(pause)
            began = time.perf_counter()
            body = {"query": text, "as_you_type": True, "limit": 8, "language": chance.choice(("cs", "en"))}
            async with session.post("/v1/search", json=body) as response:
                assert response.status == 200, await response.text()
                await response.read()
            times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0 if hot else READING)
    return times


async def measure(url: str, pid: int, headings: list[str], seconds: float, *, hot: bool) -> float:
    """Print the figures of all clients; p95 in ms."""
    async with aiohttp.ClientSession(url) as session:
        began, used = time.monotonic(), cpu(pid)
        clients = [client(session, n, headings, began + seconds, hot=hot) for n in range(CLIENTS)]
        times = [one for of_client in await asyncio.gather(*clients) for one in of_client]
        took, used = time.monotonic() - began, cpu(pid) - used
    cuts = statistics.quantiles(times, n=100)
    print(
        f"{'hot loop' if hot else 'typing  '} {CLIENTS} clients: p50 {cuts[49]:.1f} ms, p95 {cuts[94]:.1f} ms, p99 {cuts[98]:.1f} ms; "
        f"{len(times) / took:.0f} searches a second, {used / len(times) * 1000:.1f} ms CPU each"
    )
    return cuts[94]


def main() -> int:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="", help="DOCS_STORE; a directory by default")
    parser.add_argument("--embedding", default="local:static", help="DOCS_EMBEDDING")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each of the two measurements")
    arguments = parser.parse_args()
    settings = {"DOCS_EMBEDDING": arguments.embedding}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings["DOCS_STORE"] = arguments.store or str(folder / "data")
        chunks, headings = index(folder, settings)
        print(f"{chunks} chunks, {arguments.embedding}, {arguments.store or 'LanceDB'}")
        with service(folder, "serve", **settings) as running:
            asyncio.run(measure(running.url, running.process.pid, headings, 3, hot=False))  # warms up
            p95 = asyncio.run(measure(running.url, running.process.pid, headings, arguments.seconds, hot=False))
            asyncio.run(measure(running.url, running.process.pid, headings, arguments.seconds / 2, hot=True))
    return int(p95 >= BOUND)


if __name__ == "__main__":
    sys.exit(main())
