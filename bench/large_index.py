"""Searches in large indexes, without a language model: `python -m bench.large_index FOLDER [--chunks 1000 …] [--store URL]`.

For each number of chunks: pages of `bench.varied_pages`, `docs-assistant ingest` of them with the embedding model of the tests, `serve` on the
index, 200 questions one after another, 200 others in the same way, then the first from 32 clients. FOLDER keeps pages, indexes and what was measured of
indexing, so a second run only measures searches; `--only index` and `--only search` do one part. In the embedded store, also
recall of the first 50 chunks of the vector search against the exhaustive one. `--plot docs` draws what FOLDER has of both stores
into `large-index.svg` of each language.
"""

import argparse
import asyncio
import itertools
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import httpx

from app.core.settings import Settings
from app.core.types import Query
from app.index.embedded.store import EmbeddedStore
from app.models import open_embedder
from bench.large_index_plot import TITLES, plot
from bench.sizing import ROOT, cpu
from bench.varied_pages import pool, write_site
from tests.end_to_end.program import environment, service
from tests.fakes import WORDS_SETTING

PAGES_OF_1000_CHUNKS = 156
QUESTIONS = 200
CLIENTS = 32
SECONDS = 10.0
PAUSE = 0.1  # seconds before a refused client comes again
DEPTH = 50
OK = 200
HEAD = """| chunks | store | indexing | disk | alone, p50 | p95 | p95 of the next 200 | CPU | searches/s, 32 clients | CPU | memory (without files) | recall |
|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


def prepare(folder: Path, sizes: Sequence[int]) -> None:
    """Write the sites that are missing, and the questions."""
    missing = [size for size in sizes if not (folder / f"site{size}").exists()]
    if missing or not (folder / "questions.json").exists():
        found = pool()
        (folder / "questions.json").write_text(json.dumps(found.questions), "utf-8")
        for size in missing:
            write_site(folder / f"site{size}", found, size * PAGES_OF_1000_CHUNKS // 1000)


def settings_of(store: str, size: int) -> dict[str, str]:
    """The settings of run and service; each number of chunks has an index of its own."""
    own = {"DOCS_STORE": f"{store}-{size}"} if store else {}
    return {"DOCS_LOG_LEVEL": "warning", "DOCS_EMBEDDING_MODEL": WORDS_SETTING, "PYTHONPATH": str(ROOT)} | own


def index(folder: Path, site: Path, settings: dict[str, str]) -> None:
    """Index the site, once; seconds and chunks are kept in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.toml"
    place = f'url = "https://docs.example.org/"\ndirectory = {json.dumps(str(site))}\nmax_pages = 100000\n'
    sources.write_text(f"[[source]]\n{place}", "utf-8")
    command = [sys.executable, "-m", "docs_assistant.cli", "ingest", "--json", str(sources)]
    run = subprocess.run(command, cwd=folder, env=environment(settings), check=False, capture_output=True, text=True)
    assert run.returncode in {0, 2}, run.stderr
    told = json.loads(run.stdout)
    (folder / "indexed.json").write_text(
        json.dumps({"seconds": told["seconds"], "chunks": told["published"]["chunks"]}), "utf-8"
    )


async def disk(folder: Path, store: str, size: int) -> float:
    """Megabytes of the index."""
    if not store:
        return sum(file.stat().st_size for file in (folder / "data").rglob("*") if file.is_file()) / 1e6
    server, _, name = store.removeprefix("opensearch://").rpartition("/")
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{server}/{name}-{size}-*/_stats/store") as response,
    ):
        return float((await response.json())["_all"]["primaries"]["store"]["size_in_bytes"]) / 1e6


async def search(session: aiohttp.ClientSession, url: str, question: tuple[str, str]) -> float:
    """Seconds of one search; 0 if the service has too many."""
    began = time.perf_counter()
    body = {"query": question[1], "language": question[0]}
    async with session.post(f"{url}/v1/search", json=body) as response:
        assert response.status in {200, 503}, await response.text()
        await response.read()
    return (time.perf_counter() - began) * (response.status == 200)


async def searches(
    url: str, pid: int, questions: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]]
) -> dict[str, float]:
    """Times of searches alone and of many at once, and the CPU of the service for each, in milliseconds.

    `others` are searched alone after `questions`: a server that just started is slower at first.
    """
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as session:
        for question in questions[:20]:  # what is read once for an index is read
            await search(session, url, question)
        used = cpu(pid)
        times = [await search(session, url, question) * 1000 for question in questions]
        alone = (cpu(pid) - used) / len(times) * 1000
        later = [await search(session, url, question) * 1000 for question in others]
        asked, done, used, ends = itertools.cycle(questions), 0, cpu(pid), time.perf_counter() + SECONDS

        async def client() -> None:
            nonlocal done
            while time.perf_counter() < ends:
                if await search(session, url, next(asked)):
                    done += 1
                else:
                    await asyncio.sleep(PAUSE)

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        rate, each = done / (time.perf_counter() - began), (cpu(pid) - used) / done * 1000
    p50, p95, later95 = statistics.median(times), *(statistics.quantiles(some, n=20)[-1] for some in (times, later))
    return {"p50": p50, "p95": p95, "later95": later95, "alone": alone, "rate": rate, "each": each}


def memory(pid: int) -> dict[str, float]:
    """Resident memory of a process, and that without mapped files, in MB."""
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    names = {"resident": "VmRSS", "own": "RssAnon"}
    return {key: int(re.findall(rf"{name}:\s+(\d+)", text)[0]) / 1024 for key, name in names.items()}


async def recall(path: Path, questions: Sequence[tuple[str, str]]) -> float:
    """The share of the exact first chunks by vector that a search finds."""
    store = EmbeddedStore(path)
    live = await store.live()
    shares = []
    embedder = open_embedder(Settings.load(None, embedding_model=WORDS_SETTING))
    for vector in await embedder.embed_queries([text for _, text in questions]):
        exact, found = [
            {one.id for one in (await live.search(Query((), vector, exact=exact))).vector[:DEPTH]}
            for exact in (True, False)
        ]
        shares.append(len(exact & found) / len(exact))
    await store.close()
    return statistics.mean(shares)


def measure(folder: Path, store: str, size: int) -> None:
    """Search, and keep what was measured in the folder of the index."""
    place = place_of(folder, store, size)
    told = [(code, text) for code, text in json.loads((folder / "questions.json").read_text("utf-8"))]
    questions, others = told[:QUESTIONS], told[QUESTIONS : 2 * QUESTIONS]
    with service(place, "serve", **settings_of(store, size), DOCS_RATE_LIMIT="") as running:
        while httpx.get(f"{running.url}/health/ready").status_code != OK:  # until then, it reads the words of the index
            time.sleep(PAUSE)
        measured = asyncio.run(searches(running.url, running.process.pid, questions, others)) | memory(
            running.process.pid
        )
    if not store:
        measured["recall"] = asyncio.run(recall(place / "data", questions))
    measured["disk"] = asyncio.run(disk(place, store, size))
    (place / "searched.json").write_text(json.dumps(measured), "utf-8")


def place_of(folder: Path, store: str, size: int) -> Path:
    """Where an index, or what was measured of one on a server, is kept."""
    return folder / f"{'opensearch' if store else 'lancedb'}{size}"


def results(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What was measured so far of each store, from the smallest index to the largest."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in ("LanceDB", "OpenSearch"):
        places = [file.parent for file in folder.glob(f"{name.lower()}*/searched.json")]
        told = [
            {key: value for file in ("indexed", "searched") for key, value in json.loads((place / f"{file}.json").read_text("utf-8")).items()}
            for place in places
        ]  # fmt: skip
        found[name] = sorted(told, key=lambda one: int(one["chunks"]))
    return found


def row(name: str, one: dict[str, Any]) -> str:
    """One row of the table."""
    found = f"{one['recall']:.3f}" if "recall" in one else ""
    return (
        f"| {one['chunks']:,} | {name} | {one['seconds']:.0f} s | {one['disk']:.0f} MB | {one['p50']:.0f} ms | {one['p95']:.0f} ms | {one['later95']:.0f} ms | {one['alone']:.1f} ms "
        f"| {one['rate']:.0f} | {one['each']:.1f} ms | {one['resident']:.0f} MB ({one['own']:.0f} MB) | {found} |"
    )


def tell(measured: dict[str, list[dict[str, Any]]], docs: Path | None) -> None:
    """Print the table, and draw the plot for each language of the documentation."""
    if not any(measured.values()):
        return
    print("\n".join([HEAD, *(row(name, one) for name, ones in measured.items() for one in ones)]))
    for language in TITLES if docs else ():
        (docs / language / "large-index.svg").write_text(plot(measured, language), "utf-8")


def main() -> int:
    """Index what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chunks", type=int, nargs="+", default=[1000, 10_000, 100_000, 300_000])
    parser.add_argument("--store", default="", help="opensearch://host:port/name instead of directories")
    parser.add_argument("--only", choices=("index", "search"))
    parser.add_argument("--plot", type=Path, help="folder of the documentation")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.only != "search":
        prepare(folder, arguments.chunks)
        for size in arguments.chunks:
            place = place_of(folder, arguments.store, size)
            if not (place / "indexed.json").exists():
                index(place, folder / f"site{size}", settings_of(arguments.store, size))
    if arguments.only != "index":
        for size in arguments.chunks:
            measure(folder, arguments.store, size)
    tell(results(folder), arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
