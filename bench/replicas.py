"""Two replicas behind HAProxy while parts of them stop: `python -m bench.replicas --server DIR --folder DIR`.

Starts two OpenSearch nodes with data and one that votes (DIR is an unpacked OpenSearch with the k-NN plugin, see
`bench.opensearch_nodes`), PostgreSQL, Redis, HAProxy with deploy/haproxy/haproxy.cfg, a fake model that writes two words a
second, and two `docs-assistant serve` over this repository's documentation. 50 readers with a conversation each ask one
question after another through HAProxy, and never ask one again, while both replicas are restarted, one is killed, a node is
restarted and an index is published. The table says what they got. The exit code is 1 if a request was lost. Takes about ten minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import aiohttp

from app.core.errors import StoreError
from app.index.opensearch.store import OpenSearchStore
from bench.opensearch_nodes import Node, add_options, cluster, healthy, hosts
from bench.overload import quantile
from bench.readers import END, QUESTIONS, WAIT, Asked, Reader
from tests import postgres
from tests.app.api.test_keys import entry, key, write
from tests.end_to_end.haproxy import NAME, haproxy
from tests.end_to_end.program import Program, finished, free_port
from tests.fake_llm import FakeLLM, Reply, fake_llm

ROOT = Path(__file__).parents[1]
WORD = 0.5
"""Seconds between two words of the model."""
KILL = "kill -9 of one"
ALLOWED = 20
"""Questions a minute of the key `limited`."""
NEW_PAGE = "---\ntitle: Zymurgy\n---\n\n# Zymurgy\n\nThe zymurgy of the index is measured in pints.\n"
COLUMNS = (
    "step", "s", "requests", "lost", "cut", "told to wait", "sent again by HAProxy", "first text p50 s", "p95 s", "longest gap s", "notes",
)  # fmt: skip


class Stage:
    """All servers and readers, and the rows of the table."""

    def __init__(self, folder: Path, nodes: Sequence[Node], database: str, redis: str, model: str) -> None:
        self.folder, self.nodes = folder, nodes
        self.ports = free_port(), free_port()
        entries = entry("readers"), entry("limited", rate=f'"{ALLOWED}/minute"')
        keys = write(folder / "keys.toml", *entries)
        shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("decisions"))
        sources = f'[[source]]\nurl = "https://{NAME}/"\ndirectory = {json.dumps(str(folder / "docs"))}\n'
        (folder / "sources.toml").write_text(sources)
        self.settings = {
            "DOCS_STORE": f"opensearch://{hosts(nodes)}/docs?replicas=1",
            "DOCS_DATABASE": database,
            "DOCS_LIMITS_STORE": redis,
            "DOCS_LLM_URL": model,
            "DOCS_LLM_MODEL": "fake",
            "DOCS_HELPER_CALLS": "0",
            "DOCS_MIN_EVIDENCE": "0",
            "DOCS_KEYS": keys,
            "DOCS_RATE_LIMIT": "",
            "DOCS_CONCURRENCY_LIMIT": "0",
            "DOCS_ALLOWED_HOSTS": f"{NAME},127.0.0.1",
            "DOCS_TRUSTED_PROXIES": "127.0.0.1",
            "PYTHONPATH": str(ROOT),
        }
        self.url = ""
        self.replicas: list[Program] = []
        self.done: list[Asked] = []
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=300),
            headers=key("readers", Host=NAME),
        )

    def ingest(self) -> str:
        """Index the pages; the seconds that it took."""
        began = time.monotonic()
        done = finished(self.folder, "ingest", str(self.folder / "sources.toml"), **self.settings)
        if done.returncode:
            raise SystemExit(f"docs-assistant ingest ended with {done.returncode}: {done.stderr[-1000:]}")
        return f"the run took {time.monotonic() - began:.0f} s"

    def start(self, number: int) -> Program:
        """Start this replica; it isn't ready yet."""
        folder, port = self.folder / f"replica-{number}", self.ports[number]
        return Program(folder, "serve", "--port", str(port), **self.settings)

    async def both_ready(self) -> None:
        """Return when HAProxy knows that both replicas are ready."""
        async with asyncio.timeout(180):
            while True:
                with suppress(OSError):  # it starts
                    known = {
                        row["svname"]: row["status"] for row in await self._known() if row["pxname"] == "instances"
                    }
                    if known["one"] == known["other"] == "UP":
                        return
                await asyncio.sleep(0.1)

    async def restart(self, number: int) -> str:
        """Stop this replica as systemd does, and start it again; says how long each took."""
        began = time.monotonic()
        code = await asyncio.to_thread(self.replicas[number].end, seconds=100)
        stopped = time.monotonic()
        self.replicas[number] = self.start(number)
        await self.both_ready()
        return f"stopped in {stopped - began:.0f} s (exit {code}), ready {time.monotonic() - stopped:.0f} s later"

    async def sent_again(self) -> int:
        """How often HAProxy has sent a request again, to the same or to the other replica."""
        return sum(
            int(row["wretr"] or 0) + int(row["wredis"] or 0)
            for row in await self._known()
            if row["svname"] == "BACKEND"
        )

    async def _known(self) -> Sequence[Mapping[str, str]]:
        reader, writer = await asyncio.open_unix_connection(str(self.folder / "admin.sock"))
        writer.write(b"show stat\n")
        head, *rows = (await reader.read()).decode().strip().splitlines()
        writer.close()
        names = head.removeprefix("# ").split(",")
        return [dict(zip(names, row.split(","), strict=False)) for row in rows]

    async def step(self, name: str, seconds: float, act: Callable[[], Awaitable[str]]) -> Sequence[Asked]:
        """One row of the table: what readers got while this happened, for so many seconds at least."""
        start, before = time.monotonic(), await self.sent_again()
        notes = await act()
        await asyncio.sleep(max(0.0, start + seconds - time.monotonic()))
        asked = [one for one in self.done if one.ended >= start]
        first = [one.first for one in asked if one.first]
        again = await self.sent_again() - before
        got = Counter(one.outcome for one in asked)
        lost = len(asked) - got[""] - got["cut"] - got[WAIT]
        cells = (
            name, f"{time.monotonic() - start:.0f}", len(asked), lost, got["cut"], got[WAIT], again,
            f"{quantile(first, 50):.2f}", f"{quantile(first, 95):.2f}", f"{max((one.gap for one in asked), default=0):.2f}", notes,
        )  # fmt: skip
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
        for outcome in sorted(set(got) - {"", "cut", WAIT})[:5]:
            print("  lost:", outcome[:400].replace("\n", " "), flush=True)
        return asked


async def nothing() -> str:
    """What a step without an event does."""
    return ""


def steps(stage: Stage) -> Iterator[tuple[str, float, Callable[[], Awaitable[str]]]]:
    """The rows of the table: name, least seconds, and what happens."""

    async def rolling() -> str:
        return "; ".join([await stage.restart(number) for number in (0, 1)])

    async def kill() -> str:
        stage.replicas[0].end(signal.SIGKILL)
        await asyncio.sleep(10)
        stage.replicas[0] = stage.start(0)
        await stage.both_ready()
        return "started again after 10 s"

    async def node() -> str:
        began = time.monotonic()
        await asyncio.to_thread(stage.nodes[0].kill, signal.SIGTERM)
        stage.nodes[0].start()
        await healthy(stage.nodes)
        return f"green again after {time.monotonic() - began:.0f} s"

    async def publish() -> str:
        for language in ("en", "cs"):
            (stage.folder / "docs" / language / "zymurgy.md").write_text(NEW_PAGE, encoding="utf-8")
        noticing = asyncio.create_task(noticed(stage))
        took = await asyncio.to_thread(stage.ingest)
        return f"{took}; {await noticing}"

    yield "both replicas", 20, nothing
    yield "rolling restart", 20, rolling
    yield KILL, 30, kill
    yield "one OpenSearch node restarted", 30, node
    yield "an index published", 20, publish
    yield "both replicas", 20, nothing


async def noticed(stage: Stage) -> str:
    """How long after the pointer moved each replica answered from the new index."""
    store = OpenSearchStore(f"http://{hosts(stage.nodes)}", index="docs")
    before, moved, seen = (await store.live()).info.id, 0.0, dict[int, float]()
    asked = {"query": "zymurgy pints", "limit": 5}
    async with asyncio.timeout(300):
        while len(seen) < len(stage.ports):
            with suppress(StoreError):
                if not moved and (await store.live()).info.id != before:
                    moved = time.monotonic()
            for port in set(stage.ports) - set(seen):
                async with stage.session.post(f"http://127.0.0.1:{port}/v1/search", json=asked) as response:
                    if b"zymurgy" in (await response.read()).lower().replace(b"zymurgy pints", b""):
                        seen[port] = time.monotonic()
            await asyncio.sleep(0.05)
    await store.close()
    return "both replicas answered from it after " + " and ".join(f"{at - moved:.1f} s" for at in seen.values())


async def limited(stage: Stage) -> str:
    """Questions of a key with a rate, at once through HAProxy: how many were answered."""
    body = {"model": "docs-assistant", "stream": False, "messages": [{"role": "user", "content": QUESTIONS[0]}]}

    async def one() -> int:
        async with stage.session.post(
            f"{stage.url}/v1/chat/completions", json=body, headers=key("limited")
        ) as response:
            return response.status

    statuses = Counter(await asyncio.gather(*(one() for _ in range(2 * ALLOWED))))
    return f"{2 * ALLOWED} questions at once of a key with {ALLOWED} a minute: {dict(sorted(statuses.items()))}"


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[None]:
    """A server, until the end of the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


async def measure(stage: Stage, readers: int, servers: ExitStack) -> bool:
    """Start the replicas and HAProxy, and take all steps; true if nothing was lost."""
    print("first run:", await asyncio.to_thread(stage.ingest), flush=True)
    stage.replicas = [stage.start(number) for number in (0, 1)]  # at once: both want to make the tables
    servers.callback(lambda: [one.end(signal.SIGKILL) for one in stage.replicas])
    stage.url = servers.enter_context(haproxy(stage.folder, stage.ports))
    await stage.both_ready()
    all_ = [Reader(number, stage.session, stage.url) for number in range(readers)]
    tasks = [asyncio.create_task(reader.read(stage.done)) for reader in all_]
    await asyncio.sleep(40)
    print(f"| {' | '.join(COLUMNS)} |\n|---|{'---:|' * (len(COLUMNS) - 2)}---|", flush=True)
    lost = 0
    for name, seconds, act in steps(stage):
        asked = await stage.step(name, seconds, act)
        lost += sum(one.outcome not in ("", WAIT) and (one.outcome != "cut" or name != KILL) for one in asked)
    for task in tasks:
        task.cancel()
    failed = [one for one in await asyncio.gather(*tasks, return_exceptions=True) if isinstance(one, Exception)]
    print(
        "missing in the conversations:",
        sum([await reader.missing() for reader in all_]),
        "of",
        sum(len(r.answered) for r in all_),
    )
    print(await limited(stage))
    print("readers that failed:", failed)
    return not lost and not failed


async def run(arguments: argparse.Namespace, nodes: Sequence[Node]) -> bool:
    """Start what the replicas need, and measure."""
    with ExitStack() as servers:
        for node in nodes:
            servers.callback(node.kill, signal.SIGTERM)
            node.start()
        database = servers.enter_context(postgres.cluster()).new_database()
        port = free_port()
        redis = ["redis-server", "--port", str(port), "--save", "", "--dir", str(arguments.folder)]
        servers.enter_context(running(redis, arguments.folder / "redis.log"))
        await healthy(nodes)
        async with fake_llm(FakeLLM()) as model:
            model.reply = lambda body: Reply(answer() if body.get("stream") else f"{END} [1].", piece_delay=WORD)
            stage = Stage(arguments.folder, nodes, database, f"redis://127.0.0.1:{port}/0", model.url)
            try:
                return await measure(stage, arguments.readers, servers)
            finally:
                await stage.session.close()


def answer() -> str:
    """What the model writes: 30 to 70 words."""
    return f"The documentation says how [1]. {'You set it in the settings. ' * random.randint(4, 12)}{END} [1]."


def main() -> int:
    """Start everything, measure, stop everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--readers", type=int, default=50)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are stopped, too
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    return 0 if asyncio.run(run(arguments, cluster(arguments))) else 1


if __name__ == "__main__":
    sys.exit(main())
