"""Measures a service under overload: `python -m bench.overload [--fake-llm FILE]`.

Indexes this repository's documentation, starts `docs-assistant serve` and measures its capacity with clients that ask again
as soon as they have an answer. Then sends requests at 0.5, 1, 2, 4 and 8 times that rate, at random moments, without
waiting for earlier answers: once without a language model and once with the benchmark's fake model, whose tokens are paced.
Everything runs on this machine and takes three to four minutes. `--code DIR` measures the service of another checkout.
The exit code is 1 if a bound doesn't hold.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from bench.load import Level, Service, capacity, offered
from tests.end_to_end.program import environment, free_port

ROOT = Path(__file__).parents[1]
FAKE_LLM = ROOT.parent / "shared/bench/fake_llm.py"
LEVELS = (0.5, 1, 2, 4, 8)
TOKENS, PER_SECOND, FIRST_TOKEN = 40, 40, 300  # of an answer of the fake model: about 1.3 s
RULES = [
    {"match": "one line per language", "answer": "en: setting, service\ncs: nastavení, služba", "ttft_ms": 60},
    {"match": "Rewrite the user", "answer": "Which setting is it?", "ttft_ms": 60},
]
BOUNDS = (
    "goodput at 4 x >= 80 % of the best, p99 of the accepted at 4 x <= 2 x that at 1 x, memory at 4 x and 8 x <= 1.3 x that "
    "at 1 x, /health < 1 s throughout, back to normal within 5 s"
)
COLUMNS = (
    "load", "offered/s", "good/s", "answered", "refused", "failed", "p50 / p99 s", "p99 first byte s", "p99 refusal ms",
    "memory MB", "CPU", "good per CPU s", "/health max ms", "normal after s",
)  # fmt: skip


async def measure(service: Service, clients: int, seconds: float, levels: Sequence[float]) -> list[Level]:
    """Measure all rates, after a warm-up and the capacity."""
    alone, warm = Level(0, 1), Level(0, 1)
    await asyncio.gather(*(service.ask(number, warm) for number in range(8)))
    normal = statistics.median([await service.ask(number, alone) for number in range(20)])
    await capacity(service, clients, seconds / 2)
    best = await capacity(service, clients, seconds)
    print(
        f"\n{'with a model' if service.stream else 'extractive'}: one at a time {normal * 1000:.0f} ms; capacity {best.rate:.1f}/s "
        f"({clients} clients in turn: p99 {quantile(best.answered, 99):.2f} s, {len(best.refused)} refused, {len(best.failed)} failed)"
    )
    print(f"\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    found = []
    for times in levels:
        level = await offered(service, times * best.rate, seconds, normal)
        print(row(times, level), flush=True)
        if level.failed:
            print("failed:", *sorted(set(level.failed))[:3], sep="\n  ")
        found.append(level)
    return found


def row(times: float, level: Level) -> str:
    """One line of the table."""
    cells = (
        f"{times:g} x", f"{level.rate:.0f}", f"{level.goodput:.1f}", len(level.answered), len(level.refused), len(level.failed),
        f"{quantile(level.answered, 50):.2f} / {quantile(level.answered, 99):.2f}", f"{quantile(level.first, 99):.2f}",
        f"{quantile(level.refused, 99) * 1000:.0f}", f"{level.memory / 1024:.0f}", f"{level.cpu:.2f}",
        f"{level.goodput / max(level.cpu, 0.01):.0f}",
        f"{max(level.health, default=0) * 1000:.0f}", f"{level.recovery:.1f}",
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def quantile(values: Sequence[float], percent: int) -> float:
    """0 where there are no values."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else sum(values)


def held(levels: Mapping[float, Level]) -> bool:
    """True if all bounds hold; prints each figure and marks those that don't."""
    at1, at4, at8 = levels[1], levels[4], levels[8]
    best = max(level.goodput for level in levels.values())
    figures = {
        "goodput at 4 x / best": (at4.goodput / best, at4.goodput >= 0.8 * best),
        "p99 at 4 x / at 1 x": (
            ratio := quantile(at4.answered, 99) / max(quantile(at1.answered, 99), 1e-9),
            ratio <= 2,
        ),
        "memory at 4 x / at 1 x": (at4.memory / at1.memory, at4.memory <= 1.3 * at1.memory),
        "memory at 8 x / at 1 x": (at8.memory / at1.memory, at8.memory <= 1.3 * at1.memory),
        "slowest /health, s": (slow := max(max(level.health) for level in levels.values()), slow < 1),
        "longest until normal, s": (late := max(level.recovery for level in levels.values()), late <= 5),
    }
    for name, (value, fine) in figures.items():
        print(f"{name}: {value:.2f}{'' if fine else '  <-- NOT HELD'}")
    return all(fine for _, fine in figures.values())


@contextmanager
def running(code: Path, folder: Path, llm_port: int) -> Iterator[tuple[int, int]]:
    """Port and process id of `docs-assistant serve`, which asks the model server if its port is given."""
    port = free_port()
    settings = {"DOCS_STORE": str(folder / "index"), "DOCS_LOG_LEVEL": "info", "PYTHONPATH": str(code)}
    if llm_port:
        settings |= {"DOCS_LLM_URL": f"http://127.0.0.1:{llm_port}/v1", "DOCS_LLM_MODEL": "fake"}
    command = [sys.executable, "-P", "-m", "docs_assistant.cli", "serve", "--port", str(port)]
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment(settings), stdout=log, stderr=log)
    try:
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def model_server(fake_llm: Path) -> Iterator[int]:
    """The port of the benchmark's model server."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(fake_llm), str(port)], stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(20)


async def ready(session: aiohttp.ClientSession, url: str, body: Any = None) -> None:
    """Return when this address answers, after at most a minute."""
    async with asyncio.timeout(60):
        while True:
            with suppress(aiohttp.ClientError, OSError):
                async with session.request("POST" if body else "GET", url, json=body):
                    return
            await asyncio.sleep(0.2)


async def run(port: int, pid: int, llm_port: int, arguments: argparse.Namespace) -> list[Level]:
    """Measure one of the two tables."""
    clients = arguments.clients[1] if llm_port else arguments.clients[0]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        if llm_port:
            options = {"tps": PER_SECOND, "tokens": TOKENS, "ttft_ms": FIRST_TOKEN, "rules": RULES, "record": False}
            await ready(session, f"http://127.0.0.1:{llm_port}/control", options)
        service = Service(f"http://127.0.0.1:{port}", pid, bool(llm_port), session)
        await ready(session, f"{service.url}/health")
        return await measure(service, clients, arguments.seconds, arguments.levels)


def main() -> int:
    """Measure and print; the exit code is 1 if a bound doesn't hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fake-llm", type=Path, default=FAKE_LLM, help="the benchmark's fake_llm.py")
    parser.add_argument("--seconds", type=float, default=10, help="of each rate")
    parser.add_argument("--levels", type=float, nargs="+", default=LEVELS, help="multiples of the capacity")
    parser.add_argument(
        "--clients", type=int, nargs=2, default=(16, 192), help="that measure the capacity, without and with a model"
    )
    parser.add_argument("--code", type=Path, default=ROOT, help="checkout whose service is measured")
    parser.add_argument("--only", choices=("extractive", "model"), help="one of the tables")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before; bounds: {BOUNDS}")
    fine = True
    with tempfile.TemporaryDirectory() as name, model_server(arguments.fake_llm) as llm_port:
        folder = Path(name)
        sources = folder / "sources.toml"
        sources.write_text(
            f'[[source]]\nurl = "https://docs.example.org/"\ndirectory = {json.dumps(str(ROOT / "docs"))}\n'
        )
        settings = {"DOCS_STORE": str(folder / "index"), "PYTHONPATH": str(arguments.code)}
        index = [sys.executable, "-P", "-m", "docs_assistant.cli", "ingest", str(sources)]
        subprocess.run(index, check=True, capture_output=True, cwd=folder, env=environment(settings))
        for port in [0] * (arguments.only != "model") + [llm_port] * (arguments.only != "extractive"):
            with running(arguments.code.resolve(), folder, port) as (service_port, pid):
                levels = uvloop.run(run(service_port, pid, port, arguments))
            if arguments.levels == LEVELS:
                fine = held(dict(zip(LEVELS, levels, strict=True))) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
