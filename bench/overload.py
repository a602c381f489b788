"""What a service does when more is asked of it than it can answer: `python -m bench.overload [--fake-llm FILE]`.

Indexes this repository's documentation, starts `docs-assistant serve` and measures its capacity with clients that ask again
as soon as they have an answer. Then requests come at 0.5, 1, 2, 4 and 8 times that rate, at random moments and
whether or not earlier ones were answered; once without a language model and once with the benchmark's fake one, whose
tokens are paced. Everything is on this machine; three to four minutes. `--code DIR` measures the service of another checkout.
Ends with 1 where a bound doesn't hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import uvloop

from tests.end_to_end.program import environment, free_port

ROOT = Path(__file__).parents[1]
FAKE_LLM = ROOT.parent / "shared/bench/fake_llm.py"
LEVELS = (0.5, 1, 2, 4, 8)
IN_TIME = 5.0  # seconds within which an answer is of use
DRAIN = 40.0  # seconds that the last ones are waited for
TOKENS, PER_SECOND, FIRST_TOKEN = 40, 40, 300  # of an answer of the fake model: about 1.3 s
RULES = [
    {"match": "one line per language", "answer": "en: setting, service\ncs: nastavení, služba", "ttft_ms": 60},
    {"match": "Rewrite the user", "answer": "Which setting is it?", "ttft_ms": 60},
]
QUESTIONS = (
    "Which setting changes the port of the service?", "Jak připojím jazykový model?", "What is a generation?",
    "How do I index a site behind a login?", "Co se stane, když model neodpovídá?", "How are sources sent to Open WebUI?",
    "Which splitter cuts pages along headings?", "Jak přidám vlastního asistenta?", "How do I roll back an index?",
    "What does the step relevance do?", "How do I run it with OpenSearch?", "Kolik paměti potřebuje vestavěné úložiště?",
)  # fmt: skip
BOUNDS = (
    "goodput at 4 x >= 80 % of the best, p99 of the accepted at 4 x <= 2 x that at 1 x, memory at 4 x and 8 x <= 1.3 x that "
    "at 1 x, /health < 1 s throughout, back to normal within 5 s"
)
COLUMNS = (
    "load", "offered/s", "good/s", "answered", "refused", "failed", "p50 / p99 s", "p99 first byte s", "p99 refusal ms",
    "memory MB", "CPU", "good per CPU s", "/health max ms", "normal after s",
)  # fmt: skip


@dataclass
class Level:
    """What clients and the process table saw at one rate. Times in seconds, memory in kilobytes."""

    rate: float
    seconds: float
    good: int = 0
    answered: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    memory: int = 0
    cpu: float = 0.0
    recovery: float = 0.0

    @property
    def goodput(self) -> float:
        """Whole answers in time, per second."""
        return self.good / self.seconds


@dataclass(frozen=True)
class Service:
    """A running service, asked over connections that are kept while they are idle."""

    port: int
    pid: int
    stream: bool
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)

    async def ask(self, number: int, level: Level, limit: float = 60.0) -> float:
        """One request, its outcome counted; seconds until its end."""
        began, writer = time.monotonic(), None
        try:
            async with asyncio.timeout(limit):
                reader, writer = await self._connection()
                writer.write(question(number % len(QUESTIONS), stream=self.stream))
                status, first, body, kept = await answer(reader)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
            level.failed.append(repr(error)[:80])
            if writer:
                writer.close()
            return time.monotonic() - began
        took = time.monotonic() - began
        self.idle.append((reader, writer)) if kept else writer.close()
        if status == 503 and b'"overloaded"' in body:
            level.refused.append(took)
        elif status == 200 and whole(body, stream=self.stream):
            level.answered.append(took)
            level.first.append(first - began)
            level.good += took <= IN_TIME
        else:
            level.failed.append(f"{status} {body[:80]!r}")
        return took

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def health(self, level: Level) -> None:
        """Ask /health four times a second, and look at the process."""
        cpu, began = self._cpu(), time.monotonic()
        try:
            while True:
                asked = time.monotonic()
                with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                    async with asyncio.timeout(30):
                        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        await answer(reader)
                        writer.close()
                level.health.append(time.monotonic() - asked)
                level.memory = max(level.memory, self._resident())
                level.cpu = (self._cpu() - cpu) / (time.monotonic() - began)
                await asyncio.sleep(0.25)
        except asyncio.CancelledError:
            return

    def _resident(self) -> int:
        rows = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS:"))

    def _cpu(self) -> float:
        ticks = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@cache
def question(number: int, *, stream: bool) -> bytes:
    """A whole HTTP request."""
    text = QUESTIONS[number]
    body = json.dumps({"model": "docs-assistant", "stream": stream, "messages": [{"role": "user", "content": text}]})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n\r\n"
    return (head + body).encode()


async def answer(reader: asyncio.StreamReader) -> tuple[int, float, bytes, bool]:
    """Status, when the first byte came, body, and whether the connection can be used again."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    first, status = time.monotonic(), int(head.split(b" ", 2)[1])
    if b"transfer-encoding: chunked" in head:
        parts = []
        while size := int(await reader.readline(), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readline()
        body = b"".join(parts)
    else:
        length = int(head.partition(b"content-length:")[2].split(None, 1)[0])
        body = await reader.readexactly(length)
    return status, first, body, b"connection: close" not in head


def whole(body: bytes, *, stream: bool) -> bool:
    """Whether this is an answer to its end, and the model's own where it is streamed."""
    if stream:
        return body.endswith(b"data: [DONE]\n\n") and b'"error"' not in body and b"THE-END" in body
    return b'"finish_reason":"stop"' in body


async def capacity(service: Service, clients: int, seconds: float) -> Level:
    """The rate at which so many clients are answered who ask again at once."""
    level, end = Level(0, seconds), time.monotonic() + seconds

    async def client(number: int) -> None:
        await asyncio.sleep(random.random() * seconds / 4)
        while time.monotonic() < end:
            before = len(level.refused)
            await service.ask(number, level)
            number += clients
            if len(level.refused) > before:
                await asyncio.sleep(random.random())

    await asyncio.gather(*(client(number) for number in range(clients)))
    level.rate = len(level.answered) / seconds
    return level


async def offered(service: Service, rate: float, seconds: float, normal: float) -> Level:
    """Requests at this rate, and how long after them an answer takes no longer than twice the normal time."""
    level, asked = Level(rate, seconds), set[asyncio.Task[float]]()
    watcher = asyncio.create_task(service.health(level))
    moments, number, began = random.Random(7), 0, time.monotonic()
    due = began
    while due < began + seconds:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked.add(asyncio.create_task(service.ask(number, level)))
        number += 1
        due += moments.expovariate(rate)
    ended = time.monotonic()
    level.recovery = await _recovered(service, ended, normal)
    watcher.cancel()
    await asyncio.wait(asked, timeout=DRAIN)
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, watcher, return_exceptions=True)
    return level


async def _recovered(service: Service, ended: float, normal: float) -> float:
    while (waited := time.monotonic() - ended) < DRAIN:
        probe = Level(0, 1)
        took = await service.ask(0, probe, limit=DRAIN)
        if probe.answered and took <= 2 * normal:
            break
        await asyncio.sleep(0.05)
    return waited


async def measure(service: Service, clients: int, seconds: float, levels: Sequence[float]) -> list[Level]:
    """All rates, after a warm-up and the measurement of the capacity."""
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
    """Whether all bounds hold; says which one doesn't."""
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
def running(code: Path, folder: Path, llm_port: int) -> Iterator[Service]:
    """`docs-assistant serve` on a free port; with the model server's port, it asks that."""
    port = free_port()
    settings = {"DOCS_STORE": str(folder / "index"), "DOCS_LOG_LEVEL": "info", "PYTHONPATH": str(code)}
    if llm_port:
        settings |= {"DOCS_LLM_URL": f"http://127.0.0.1:{llm_port}/v1", "DOCS_LLM_MODEL": "fake"}
    command = [sys.executable, "-P", "-m", "app.cli", "serve", "--port", str(port)]
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment(settings), stdout=log, stderr=log)
    try:
        yield Service(port, process.pid, stream=bool(llm_port))
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


async def ready(port: int, path: str, body: Any = None) -> None:
    """Return when this is answered; a minute at most."""
    data = json.dumps(body).encode() if body else b""
    head = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    async with asyncio.timeout(60):
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head.encode() + data)
                await answer(reader)
                writer.close()
                return
            await asyncio.sleep(0.2)


async def run(service: Service, llm_port: int, arguments: argparse.Namespace) -> list[Level]:
    """One of the two tables."""
    if llm_port:
        options = {"tps": PER_SECOND, "tokens": TOKENS, "ttft_ms": FIRST_TOKEN, "rules": RULES, "record": False}
        await ready(llm_port, "/control", options)
    await ready(service.port, "/health")
    clients = arguments.clients[1] if service.stream else arguments.clients[0]
    return await measure(service, clients, arguments.seconds, arguments.levels)


def main() -> int:
    """Measure, print, and say by the exit code whether all bounds held."""
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
        index = [sys.executable, "-P", "-m", "app.cli", "ingest", str(sources)]
        subprocess.run(index, check=True, capture_output=True, cwd=folder, env=environment(settings))
        for port in [0] * (arguments.only != "model") + [llm_port] * (arguments.only != "extractive"):
            with running(arguments.code.resolve(), folder, port) as service:
                levels = uvloop.run(run(service, port, arguments))
            if arguments.levels == LEVELS:
                fine = held(dict(zip(LEVELS, levels, strict=True))) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
