"""Many streams at once, clients that hang up, and memory: `python -m bench.streams FAKE_LLM`; that is the benchmark's
fake_llm.py.

Starts it and a service over this repository's documentation. 200 streams at once for 60 s; 1,000
clients that hang up at random moments, each found again in the model's records; 10,000 requests with the memory
along the way. Ends with 1 where an answer was wrong, a call upstream went on, something was left, or memory grew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.end_to_end.program import environment

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TOKENS = 60
RULES = [
    {"match": "one line per language", "answer": "en: setting, service\ncs: nastavení, služba", "ttft_ms": 60},
    {"match": "Rewrite the user", "answer": "Which setting is it?", "ttft_ms": 60},
]
QUESTION = "Which setting changes the port of the service?"
MOST_LAG = 5.0  # seconds between a client's hanging up and the end of the call upstream, which would go on for up to 12
MOST_GROWTH = 0.05  # of memory, from the 2,000th to the last request


@dataclass
class Outcome:
    """What clients saw."""

    answers: int = 0
    first: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Load:
    """A service and the model server behind it."""

    session: aiohttp.ClientSession
    url: str
    llm: str

    async def get(self, url: str) -> Any:
        """What is answered, as JSON."""
        async with self.session.get(url) as response:
            return await response.json()

    async def control(self, **options: Any) -> None:
        """Set the model server, and forget its records."""
        for path, body in (("control", options), ("reset", {})):
            async with self.session.post(f"{self.llm}/{path}", json=body) as response:
                response.raise_for_status()

    async def ask(self, client: int, outcome: Outcome) -> None:
        """One answer, streamed and looked at."""
        began = time.monotonic()
        try:
            async with self.session.post(f"{self.url}/v1/chat/completions", json=question(client)) as response:
                body = b""
                async for piece in response.content.iter_any():
                    if not body:
                        outcome.first.append(time.monotonic() - began)
                    body += piece
            if fault := wrong(response.status, body.decode()):
                outcome.errors.append(fault)
        except (aiohttp.ClientError, TimeoutError) as error:
            outcome.errors.append(repr(error))
        outcome.answers += 1


def question(client: int) -> Mapping[str, Any]:
    """A request that the model's records tell from all others."""
    messages = [{"role": "system", "content": f"For client {client}."}, {"role": "user", "content": QUESTION}]
    return {"model": "docs-assistant", "stream": True, "messages": messages}


def wrong(status: int, body: str) -> str:
    """What is wrong with a stream; empty where it is whole."""
    if status != 200 or '"error"' in body or '"extractive":true' in body:
        return f"{status} {body[:300]}"
    text = "".join(json.loads(f'"{piece}"') for piece in re.findall(r'"delta":\{"content":"((?:[^"\\]|\\.)*)"', body))
    whole = text.startswith("BEGIN ") and "THE-END" in text and body.endswith("data: [DONE]\n\n")
    return "" if whole and '"sources":[{' in body else f"not whole: {text[:100]!r} … {body[-100:]!r}"


async def many(load: Load, streams: int, seconds: float) -> bool:
    """So many streams at once, each client asking again as soon as it has its answer."""
    await load.control(tps=4, tokens=TOKENS, rules=RULES, record=False)
    outcome, end = Outcome(), time.monotonic() + seconds

    async def client(number: int) -> None:
        await asyncio.sleep(random.random() * 5)
        while time.monotonic() < end:
            await load.ask(number, outcome)

    await asyncio.gather(*(client(number) for number in range(streams)))
    most = (await load.get(f"{load.llm}/stats"))["max_open_streams"]
    first = statistics.quantiles(outcome.first, n=100)
    print(
        f"{streams} streams for {seconds:.0f} s: {outcome.answers} answers, {len(outcome.errors)} errors, up to {most} "
        f"open at the model; first byte p50 {first[49] * 1000:.0f} ms, p99 {first[98] * 1000:.0f} ms"
    )
    print(*sorted(set(outcome.errors))[:5], sep="\n")
    return not outcome.errors


async def hangups(load: Load, clients: int, at_once: int) -> bool:
    """Clients that leave after up to the time that an answer takes when so many ask."""
    await load.control(tps=5, tokens=TOKENS, rules=RULES, record=False)
    began = time.monotonic()
    await asyncio.gather(*(load.ask(0, Outcome()) for _ in range(at_once)))
    longest = time.monotonic() - began
    await load.control(record=True, bodies=True)
    before = await load.get(f"{load.url}/bench")
    left: dict[int, float] = {}
    room = asyncio.Semaphore(at_once)

    async def client(number: int) -> None:
        async with room:
            task = asyncio.create_task(load.ask(number, Outcome()))
            await asyncio.wait({task}, timeout=random.random() * longest)
            if not task.done():
                left[number] = time.monotonic()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    await asyncio.gather(*(client(number) for number in range(clients)))
    await asyncio.sleep(2)
    after = await load.get(f"{load.url}/bench")
    open_streams = (await load.get(f"{load.llm}/stats"))["open_streams"]
    calls = [call for call in await load.get(f"{load.llm}/records") if call["stream"]]
    lags = [call["tN"] - left[n] for call in calls if (n := asked_by(call)) in left and call["tN"] > left[n]]
    print(
        f"{clients} clients: {len(left)} hung up, {len(calls)} calls upstream were begun, {len(lags)} were under way; "
        f"they ended after {max(lags, default=0) * 1000:.0f} ms at most (p50 {statistics.median(lags) * 1000:.0f} ms); "
        f"left: {open_streams} calls, tasks {before['tasks']} → {after['tasks']}, "
        f"connections {before['connections']} → {after['connections']}"
    )
    same = after["tasks"] <= before["tasks"] and after["connections"] <= before["connections"]
    return same and not open_streams and max(lags, default=0) <= MOST_LAG


def asked_by(call: Mapping[str, Any]) -> int:
    """The client that a call upstream is for."""
    return int(re.findall(r"For client (\d+)", call["body"])[-1])


async def memory(load: Load, requests: int, at_once: int) -> bool:
    """Resident memory of the service while it answers."""
    await load.control(tps=0, tokens=TOKENS, rules=[{**rule, "ttft_ms": 0} for rule in RULES], record=False)
    outcome, numbers = Outcome(), iter(range(requests))
    seen: dict[int, int] = {}

    async def client() -> None:
        for number in numbers:
            await load.ask(number, outcome)
            if outcome.answers % (requests // 5) == 0:
                seen[outcome.answers] = (await load.get(f"{load.url}/bench"))["resident_kb"]

    await asyncio.gather(*(client() for _ in range(at_once)))
    first, last = seen[min(seen)], seen[max(seen)]
    shown = ", ".join(f"{kb / 1024:.1f} MB after {n}" for n, kb in sorted(seen.items()))
    print(f"{requests} requests, {len(outcome.errors)} errors: {shown}")
    print(*sorted(set(outcome.errors))[:5], sep="\n")
    return not outcome.errors and last <= first * (1 + MOST_GROWTH)


def serve(port: int) -> None:
    """The service as `docs-assistant serve` has it, with a route that tells its tasks, connections and memory."""
    import uvicorn

    from app.api.server import create_app
    from app.assistants.assembly import build
    from app.cli import logs
    from app.core.settings import Settings

    settings = Settings.load(None, port=port)
    logs.configure(settings)
    app = create_app(build(settings), settings)

    async def bench() -> dict[str, int]:
        return {"tasks": len(asyncio.all_tasks()), **seen_from_outside(port)}

    app.add_api_route("/bench", bench)
    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None, access_log=False, backlog=2048)


def seen_from_outside(port: int) -> dict[str, int]:
    """Connections of this process's clients, and its resident memory."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    # local address, remote address, state: 01 is established
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    mine = [row for row in rows if row[0].endswith(f":{port:04X}") and row[2] == "01"]
    return {"connections": len(mine), "resident_kb": int(re.findall(r"VmRSS:\s+(\d+)", status)[0])}


@contextmanager
def servers(fake_llm: Path, port: int) -> Iterator[None]:
    """The model server, and the service at the next port with this repository's documentation."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {"DOCS_STORE": f"{directory}/index", "DOCS_LLM_URL": f"http://127.0.0.1:{port}/v1"}
        settings |= {"DOCS_LLM_MODEL": "fake", "DOCS_LOG_LEVEL": "warning", "PYTHONPATH": str(ROOT)}
        kept: Mapping[str, Any] = {"cwd": directory, "env": environment(settings)}
        sources = Path(directory, "sources.toml")
        sources.write_text(f'[[source]]\nurl = "https://docs.example.org/"\ndirectory = {json.dumps(str(DOCS))}\n')
        index = [sys.executable, "-m", "app.cli", "ingest", str(sources)]
        subprocess.run(index, check=True, capture_output=True, **kept)
        commands = ([str(fake_llm), str(port)], ["-m", "bench.streams", "--serve", str(port + 1)])
        running = [
            subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, **kept) for command in commands
        ]
        try:
            yield
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(20)


async def ready(load: Load) -> None:
    """Return when both servers answer; two minutes at most."""
    async with asyncio.timeout(120):
        for url in (f"{load.llm}/stats", f"{load.url}/bench"):
            while True:
                try:
                    await load.get(url)
                    break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.2)


async def run(port: int, share: float) -> Sequence[bool]:
    """All three parts."""
    # connections that the client closes on purpose, so that what stays open is the service's doing
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        load = Load(session, f"http://127.0.0.1:{port + 1}", f"http://127.0.0.1:{port}")
        await ready(load)
        await load.control(tps=0, tokens=TOKENS, rules=RULES, record=False)
        await load.ask(0, Outcome())
        return [
            await many(load, 200, 60 * share),
            await hangups(load, int(1000 * share), 100),
            await memory(load, int(10_000 * share), 32),
        ]


def main() -> int:
    """Measure, print, and say by the exit code whether all held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fake_llm", type=Path, nargs="?")
    parser.add_argument("--port", type=int, default=8640, help="of the model server; the service has the next one")
    parser.add_argument("--share", type=float, default=1.0, help="a part of the whole measurement, for a try")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return 0
    if not arguments.fake_llm:
        parser.error("which fake_llm.py?")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with servers(arguments.fake_llm.resolve(), arguments.port):
        return 0 if all(asyncio.run(run(arguments.port, arguments.share))) else 1


if __name__ == "__main__":
    sys.exit(main())
