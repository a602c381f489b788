"""A model that dies, hangs, fails and recovers while users ask: `python -m bench.outage`.

Indexes this repository's documentation, starts `docs-assistant serve` with a fake model server, and lets 20 users ask one
question after another for about two minutes. Meanwhile the model server dies, hangs, answers 500, then 429, and works again
after each. The table says for each slice of time what the users got, and what /health, /health/ready, the log and
/metrics said. The exit code is 1 if they don't tell the same story.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench.load import QUESTIONS
from bench.overload import quantile, ready
from tests.end_to_end.program import environment, free_port
from tests.fake_llm import FakeLLM, Reply, fake_llm

ROOT = Path(__file__).parents[1]
LLM_TIMEOUT, HELPER_TIMEOUT, PAUSE = 6.0, 3.0, 10.0
LAG = {"dead": 4.0, "hangs": HELPER_TIMEOUT + 4, "500": 4.0, "429": 4.0, "works": PAUSE + 4}
"""Seconds after which everybody must tell of the new state: the timeouts, the pause of the breaker, and some."""

LONGEST_HEALTH = 5.0  # on an idle machine far below a second; the timeout of the model is longer
SAID = b"TheModelSaidSo"
WORKS = Reply(f"{SAID.decode()}: you set it in the settings [1].", piece_delay=0.02)
REPLIES = {
    "works": WORKS,
    "dead": WORKS,
    "hangs": Reply(delay=600),
    "500": Reply("out of memory", status=500),
    "429": Reply("slow down", status=429, headers={"Retry-After": "30"}),
}
PHASES = (
    ("works", 10), ("dead", 15), ("works", 20), ("hangs", 20), ("works", 20), ("500", 15), ("works", 20), ("429", 10),
    ("works", 20),
)  # fmt: skip
COLUMNS = (
    "s", "model", "written", "extractive", "without model", "failed", "p95 first text s", "/health", "model part", "ready", "log: failed / skipped / works again",
    "/metrics: written / extractive / failed calls", "same story",
)  # fmt: skip
LOGGED = {
    "failed": re.compile(r"language model failed"),
    "skipped": re.compile(r"skipped for some seconds: fake, "),
    "works again": re.compile(r"works again: fake$", re.MULTILINE),
}


@dataclass
class Slice:
    """What was seen in some seconds. `told` has pairs of the statuses of /health and its model part, in order."""

    phase: str
    begins: float
    since: float
    answers: Counter[str] = field(default_factory=Counter)
    first: list[float] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    slowest_health: float = 0.0
    ready: set[int] = field(default_factory=set)
    log: Counter[str] = field(default_factory=Counter)
    metrics: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)

    def problems(self, *, measured: bool) -> list[str]:
        """Who tells another story than the phase; empty while the lag of the phase lasts."""
        late = self.since < LAG[self.phase]
        works = self.phase == "works"
        right, wrong = ("written", "extractive") if works else ("extractive", "written")
        found = [] if self.ready <= {200} else [f"ready {self.ready}"]
        found += ["an answer failed"] if self.answers["failed"] else []
        found += [f"/health took {self.slowest_health:.1f} s"] if self.slowest_health > LONGEST_HEALTH else []
        if late:
            return found
        found += ["answers"] if self.answers[wrong] or not self.answers[right] else []
        found += ["/health"] if set(self.told) != {("ok", "ok") if works else ("degraded", "failing")} else []
        found += ["log"] if bool(self.log["failed"]) == works else []
        if measured:
            found += ["/metrics answers"] if self.metrics[wrong] or not self.metrics[right] else []
            found += ["/metrics calls"] if works and self.metrics["failed calls"] else []
        return found

    def row(self, start: float, *, measured: bool) -> str:
        """A line of the table."""
        states = list(dict.fromkeys(self.told))
        log = " / ".join(str(self.log[name]) for name in LOGGED)
        counted = " / ".join(str(self.metrics[name]) for name in ("written", "extractive", "failed calls"))
        cells = (
            f"{self.begins - start:.0f}", self.phase, *(self.answers[name] for name in ("written", "extractive", "other", "failed")),
            f"{quantile(self.first, 95):.2f}", " → ".join(dict.fromkeys(status for status, _ in states)),
            " → ".join(dict.fromkeys(state for _, state in states)), "/".join(map(str, sorted(self.ready))), log,
            counted if measured else "-", ", ".join(self.different) or "yes",
        )  # fmt: skip
        return f"| {' | '.join(map(str, cells))} |"


class Scene:
    """The model server, the users, and who watches the service."""

    def __init__(self, url: str, log: Path, session: aiohttp.ClientSession) -> None:
        self.url, self._log, self._session = url, log, session
        self._read = 0
        self._counted: Counter[str] = Counter()
        self.measured = False
        self.slices: list[Slice] = []
        self.turns: list[tuple[str, float, dict[str, float]]] = []

    def begin(self, phase: str, since: float) -> None:
        """Begin a slice, `since` seconds after its phase."""
        now = time.monotonic()
        if not since:
            self.turns.append((phase, now, {}))
        self.slices.append(Slice(phase, now, since))

    def _saw(self, who: str, *, works: bool) -> None:
        phase, began, seen = self.turns[-1]
        if works == (phase == "works"):
            seen.setdefault(who, time.monotonic() - began)

    async def warm_up(self, port: int) -> None:
        """Ask one question, so that models are loaded, and begin to count."""
        async with fake_llm(FakeLLM(), port):
            await self._ask(QUESTIONS[0])
        await self.end()

    async def user(self, number: int) -> None:
        """Ask one question after another until cancelled."""
        while True:
            outcome, first = await self._ask(QUESTIONS[number % len(QUESTIONS)])
            now = self.slices[-1]
            now.answers[outcome] += 1
            now.first.append(first)
            if outcome in {"written", "extractive"}:
                self._saw("answers", works=outcome == "written")
            number += 1
            await asyncio.sleep(random.uniform(0.2, 0.8))

    async def _ask(self, question: str) -> tuple[str, float]:
        began, first, body = time.monotonic(), 0.0, bytearray()
        asked = {"model": "docs-assistant", "stream": True, "messages": [{"role": "user", "content": question}]}
        try:
            async with self._session.post(f"{self.url}/v1/chat/completions", json=asked) as response:
                async for piece in response.content.iter_any():
                    body += piece
                    first = first or (time.monotonic() - began if b'"content":"' in body else 0.0)
        except (aiohttp.ClientError, OSError):
            return "failed", time.monotonic() - began
        whole = response.status == 200 and body.endswith(b"data: [DONE]\n\n") and b'"error"' not in body
        if not whole:
            return "failed", time.monotonic() - began
        if b'"extractive":true' in body:
            return "extractive", first
        return ("written" if SAID in body else "other"), first

    async def watch(self) -> None:
        """Ask for health once per second until cancelled."""
        while True:
            asked = time.monotonic()
            told = await self._get("/health")
            now = self.slices[-1]
            now.slowest_health = max(now.slowest_health, time.monotonic() - asked)
            body = json.loads(told[1])
            now.told.append((body["status"], body["parts"]["model"]["state"]))
            self._saw("/health", works=body["status"] == "ok")
            is_ready, _ = await self._get("/health/ready")
            self.slices[-1].ready.add(is_ready)
            assert (await self._get("/health/live"))[0] == 200
            await asyncio.sleep(1)

    async def end(self) -> Slice:
        """End the current slice: add what the log and the metrics have."""
        now = self.slices[-1]
        text = self._log.read_text("utf-8")
        new, self._read = text[self._read :], len(text)
        now.log.update({name: len(pattern.findall(new)) for name, pattern in LOGGED.items()})
        status, text = await self._get("/metrics")
        self.measured = status == 200
        counted = counters(text) if self.measured else Counter[str]()
        now.metrics = Counter({name: value - self._counted[name] for name, value in counted.items()})
        self._counted = counted
        now.different = now.problems(measured=self.measured)
        return now

    async def _get(self, path: str) -> tuple[int, str]:
        async with self._session.get(self.url + path) as response:
            return response.status, await response.text()


def counters(text: str) -> Counter[str]:
    """The counters of answers and of failed calls to the model, in the text that Prometheus reads."""
    found: Counter[str] = Counter()
    for outcome, value in re.findall(
        r'^docs_assistant_answers_total\{.*outcome="(\w+)".*\} (\S+)$', text, re.MULTILINE
    ):
        found[outcome] += int(float(value))
    for value in re.findall(r'^docs_assistant_call_failures_total\{.*part="model".*\} (\S+)$', text, re.MULTILINE):
        found["failed calls"] += int(float(value))
    return found


async def play(scene: Scene, llm: FakeLLM, port: int, seconds: float, times: float) -> None:
    """Go through all phases, in slices of some seconds; prints a line of the table for each."""
    print(f"\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    start = time.monotonic()
    async with AsyncExitStack() as server:
        await server.enter_async_context(fake_llm(llm, port))
        for phase, lasts in PHASES:
            llm.reply = lambda _, phase=phase: REPLIES[phase]
            if phase == "dead":
                await server.aclose()
            for number in range(round(lasts * times / seconds)):
                scene.begin(phase, number * seconds)
                await asyncio.sleep(seconds)
                print((await scene.end()).row(start, measured=scene.measured), flush=True)
            if phase == "dead":
                await server.enter_async_context(fake_llm(llm, port))


async def run(url: str, log: Path, port: int, arguments: argparse.Namespace) -> Scene:
    """Start users and watchers, and play all phases."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await ready(session, f"{url}/health")
        scene = Scene(url, log, session)
        scene.begin("works", 0)
        await scene.warm_up(port)
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(scene.user(n)) for n in range(arguments.users)]
        tasks.append(asyncio.create_task(scene.watch()))
        try:
            await play(scene, FakeLLM(), port, arguments.slice, arguments.times)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error
    return scene


def agree(scene: Scene) -> bool:
    """Print the verdict; True if all slices tell the same story."""
    slices, measured = scene.slices[1:], scene.measured
    different = [one for one in slices if one.different]
    for phase, _, seen in scene.turns[1:]:
        print(f"{phase}: " + ", ".join(f"{who} after {seconds:.1f} s" for who, seconds in seen.items()))
    total = sum((one.answers for one in slices), Counter[str]())
    slowest = {phase: max(one.slowest_health for one in slices if one.phase == phase) for phase in REPLIES}
    print(f"\nanswers: {dict(total)}; slowest /health: " + ", ".join(f"{k} {v:.2f} s" for k, v in slowest.items()))
    if measured:
        counted = sum((one.metrics for one in slices), Counter[str]())
        print(f"/metrics: {dict(counted)}")
    print("all tell the same story" if not different else f"{len(different)} slices tell different stories")
    return not different


def main() -> int:
    """Play, print, and return 1 if health, metrics, log and answers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--slice", type=float, default=5, help="seconds of a line of the table")
    parser.add_argument("--times", type=float, default=1, help="make all phases so many times as long")
    parser.add_argument("--log", type=Path, help="keep the log of the service in this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, port, llm_port = Path(name), free_port(), free_port()
        sources = folder / "sources.toml"
        directory = json.dumps(str(ROOT / "docs"))
        sources.write_text(f'[[source]]\nurl = "https://docs.example.org/"\ndirectory = {directory}\n')
        settings = {"DOCS_STORE": str(folder / "index"), "PYTHONPATH": str(ROOT), "DOCS_LOG_LEVEL": "info"}
        settings |= {"DOCS_LLM_URL": f"http://127.0.0.1:{llm_port}/v1", "DOCS_LLM_MODEL": "fake"}
        settings |= {"DOCS_LLM_TIMEOUT": str(LLM_TIMEOUT), "DOCS_HELPER_TIMEOUT": str(HELPER_TIMEOUT)}
        program = [sys.executable, "-P", "-m", "app.cli"]
        subprocess.run(
            [*program, "ingest", str(sources)], check=True, capture_output=True, cwd=folder, env=environment(settings)
        )
        log = folder / "serve.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*program, "serve", "--port", str(port)], cwd=folder, env=environment(settings), stdout=out, stderr=out
            )
        try:
            print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before; {arguments.users} users")
            scene = asyncio.run(run(f"http://127.0.0.1:{port}", log, llm_port, arguments))
        finally:
            process.terminate()
            process.wait(30)
            if arguments.log:
                arguments.log.write_bytes(log.read_bytes())
    return 0 if agree(scene) else 1


if __name__ == "__main__":
    sys.exit(main())
