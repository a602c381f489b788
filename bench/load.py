"""Load on a running service: clients in turn, or requests at a rate, and what each saw."""

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from bench.sizing import cpu

IN_TIME = 5.0  # seconds within which an answer is useful
DRAIN = 40.0  # seconds to wait for the last answers
QUESTIONS = (
    "Which setting changes the port of the service?", "Jak připojím jazykový model?", "What is a generation?",
    "How do I index a site behind a login?", "Co se stane, když model neodpovídá?", "How are sources sent to Open WebUI?",
    "Which splitter cuts pages along headings?", "Jak přidám vlastního asistenta?", "How do I roll back an index?",
    "What does the step relevance do?", "How do I run it with OpenSearch?", "Kolik paměti potřebuje vestavěné úložiště?",
)  # fmt: skip


@dataclass
class Level:
    """What the clients and the process table saw at one rate. Times in seconds, memory in kilobytes."""

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
    """A running service. The session keeps idle connections open and limits none."""

    url: str
    pid: int
    stream: bool
    session: aiohttp.ClientSession

    async def ask(self, number: int, level: Level, limit: float = 60.0) -> float:
        """Send one request and count its outcome; seconds until its end."""
        began = time.monotonic()
        text = QUESTIONS[number % len(QUESTIONS)]
        body = {"model": "docs-assistant", "stream": self.stream, "messages": [{"role": "user", "content": text}]}
        try:
            async with (
                asyncio.timeout(limit),
                self.session.post(f"{self.url}/v1/chat/completions", json=body) as response,
            ):
                first = time.monotonic()
                content = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            level.failed.append(repr(error)[:80])
            return time.monotonic() - began
        took = time.monotonic() - began
        if response.status == 503 and b'"overloaded"' in content:
            level.refused.append(took)
        elif response.status == 200 and is_whole(content, stream=self.stream):
            level.answered.append(took)
            level.first.append(first - began)
            level.good += took <= IN_TIME
        else:
            level.failed.append(f"{response.status} {content[:80]!r}")
        return took

    async def watch(self, level: Level) -> None:
        """Ask /health four times per second, each time on a new connection, and measure the process."""
        used, began = cpu(self.pid), time.monotonic()
        with suppress(asyncio.CancelledError):
            while True:
                asked = time.monotonic()
                with suppress(aiohttp.ClientError, OSError, TimeoutError):
                    async with (
                        asyncio.timeout(30),
                        self.session.get(f"{self.url}/health", headers={"Connection": "close"}),
                    ):
                        pass
                level.health.append(time.monotonic() - asked)
                level.memory = max(level.memory, self._resident())
                level.cpu = (cpu(self.pid) - used) / (time.monotonic() - began)
                await asyncio.sleep(0.25)

    def _resident(self) -> int:
        rows = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS:"))


def is_whole(content: bytes, *, stream: bool) -> bool:
    """True for a complete answer; a streamed one must be the model's own."""
    if stream:
        return content.endswith(b"data: [DONE]\n\n") and b'"error"' not in content and b"THE-END" in content
    return b'"finish_reason":"stop"' in content


async def capacity(service: Service, clients: int, seconds: float) -> Level:
    """The rate of answers to so many clients that ask again immediately."""
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
    """Requests at this rate at random moments; `recovery` is the time until an answer takes at most twice as long as
    normal.
    """
    level, asked = Level(rate, seconds), set[asyncio.Task[float]]()
    watcher = asyncio.create_task(service.watch(level))
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
