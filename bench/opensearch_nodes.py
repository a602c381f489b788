"""Two OpenSearch nodes, one of which is killed under queries and during runs: `python -m bench.opensearch_nodes --server DIR`.

DIR is an unpacked OpenSearch with the k-NN plugin (`deploy/opensearch.sh start` has one in its cache); OPENSEARCH_JAVA_HOME is a
JDK. Starts two nodes with data (512 MB heap each) and a third one without, which only votes (256 MB), on free ports, with data
and logs below --folder, and stops them in the end. The index has one replica. The table says what searches and runs got in each
step. Takes about five minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from app.core.errors import StoreError
from app.core.types import LexicalText, Query
from app.index.opensearch.address import Layout
from app.index.opensearch.store import OpenSearchStore
from bench.overload import quantile
from tests.app.index.opensearch.rows import RECIPE, put
from tests.end_to_end.program import free_port

PAGES = 400
CLIENTS = 4
QUERY = Query((LexicalText("en", "gauge pressure"),), vector=[1.0, 2.0, 3.0, 4.0], depth=20)


class Node:
    """One process of OpenSearch."""

    def __init__(self, arguments: argparse.Namespace, name: str, http: int, transports: dict[str, int]) -> None:
        self.name, self.url = name, f"http://127.0.0.1:{http}"
        place = arguments.folder / name
        shutil.rmtree(place, ignore_errors=True)
        for part in ("data", "logs"):
            (place / part).mkdir(parents=True)
        self._user = arguments.user
        if self._user:
            shutil.chown(place, self._user)
            for part in place.iterdir():
                shutil.chown(part, self._user)
        votes = name == "votes"
        self._place, self._heap = place, "256m" if votes else "512m"
        settings = {
            "cluster.name": f"bench-{os.getpid()}",
            "node.name": name,
            "node.roles": "cluster_manager" if votes else "cluster_manager,data",
            "network.host": "127.0.0.1",
            "http.port": http,
            "transport.port": transports[name],
            "discovery.seed_hosts": ",".join(f"127.0.0.1:{port}" for port in transports.values()),
            "cluster.initial_cluster_manager_nodes": ",".join(transports),
            "path.data": place / "data",
            "path.logs": place / "logs",
            "action.auto_create_index": "false",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "indices.breaker.total.use_real_memory": "false",
        }
        self._command = [str(arguments.server / "bin/opensearch"), *(f"-E{k}={v}" for k, v in settings.items())]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; it isn't ready yet."""
        environment = {
            **os.environ,
            "OPENSEARCH_JAVA_OPTS": f"-Xms{self._heap} -Xmx{self._heap} -Xlog:disable",
            "HOME": str(self._place),
        }
        with (self._place / "console.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command, env=environment, stdout=log, stderr=log, user=self._user or None, start_new_session=True
            )

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the process with all its children."""
        if self._process is not None:
            self.send(number)
            self._process.wait(60)
            self._process = None

    def send(self, number: int) -> None:
        """Send the process and all its children a signal."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def check(self) -> None:
        """End the measurement with what the node said last if it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            said = (self._place / "console.log").read_text("utf-8", "replace").strip().splitlines()
            raise SystemExit(f"The node {self.name} has ended: {said[-1] if said else 'it said nothing'}")

    async def ready(self) -> None:
        """Return when it is a cluster that answers, and its shards are there; ten minutes at most."""
        async with httpx.AsyncClient(timeout=15, trust_env=False) as http, asyncio.timeout(600):
            while True:
                self.check()
                with suppress(httpx.HTTPError):
                    found = await http.get(f"{self.url}/_cluster/health?wait_for_status=yellow&timeout=10s")
                    if found.status_code == 200:
                        return
                await asyncio.sleep(0.5)


def cluster(arguments: argparse.Namespace) -> list[Node]:
    """Two nodes with data and one that only votes, not yet started."""
    transports = {name: free_port() for name in ("one", "other", "votes")}
    return [Node(arguments, name, free_port(), transports) for name in transports]


def hosts(nodes: Sequence[Node]) -> str:
    """The nodes with data, as an address has them."""
    return ",".join(node.url.removeprefix("http://") for node in nodes[:2])


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what starting the nodes needs."""
    parser.add_argument("--server", type=Path, required=True, help="an unpacked OpenSearch with the k-NN plugin")
    parser.add_argument("--folder", type=Path, required=True, help="for data and logs of the servers")
    parser.add_argument("--user", default="", help="user that runs the nodes; OpenSearch doesn't run as root")


@dataclass
class Load:
    """Clients that search one after another; when each search ended, how long it took, and its error."""

    store: OpenSearchStore
    done: list[tuple[float, float, str]] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Begin to search."""
        self._tasks = [asyncio.create_task(self._client()) for _ in range(CLIENTS)]

    async def stop(self) -> None:
        """End all clients."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def since(self, start: float) -> str:
        """What the searches since then got, as cells of a table."""
        slice_ = [one for one in self.done if one[0] >= start]
        failed = [end - start for end, _, error in slice_ if error]
        times = sorted(1000 * took for _, took, _ in slice_)
        last = f"{max(failed):.1f}" if failed else "-"
        worst = f"{quantile(times, 50):.0f} | {quantile(times, 99):.0f} | {times[-1]:.0f}" if times else "- | - | -"
        return f"{len(slice_)} | {len(failed)} | {last} | {worst}"

    async def _client(self) -> None:
        while True:
            start, error = time.monotonic(), ""
            try:
                live = await self.store.live()
                found = await live.search(QUERY)
                texts = await live.fetch([hit.id for hit in found.lexical[:5]])
                error = "" if len(texts) == 5 else f"{len(texts)} texts"
            except StoreError as failure:
                error = str(failure)
                await asyncio.sleep(0.05)
            self.done.append((time.monotonic(), time.monotonic() - start, error))
            await asyncio.sleep(0.05)


class Bench:
    """The nodes, a store for searches and one for runs, and the rows of the table."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.url = f"http://{hosts(nodes)}"
        self.load = Load(self._open())
        self.marker = 0

    def _open(self) -> OpenSearchStore:
        return OpenSearchStore(self.url, index="docs", layout=Layout(replicas=1), lock_seconds=15, notice_seconds=1)

    async def run(self, during: Callable[[], None] = lambda: None) -> str:
        """Rewrite all pages; call `during` in the middle. Says how the run ended, after how many seconds."""
        self.marker += 1
        store, start = self._open(), time.monotonic()
        try:
            async with await store.draft(RECIPE) as draft:
                for number in range(PAGES):
                    if number == PAGES // 2:
                        during()
                    await put(draft, f"/{number}", f"state {self.marker} of gauge {number} measures pressure")
                await draft.publish()
            outcome = "published"
        except StoreError as error:
            outcome = f"{type(error).__name__}: {str(error)[:120]}"
        finally:
            await store.close()
        return f"{outcome} after {time.monotonic() - start:.0f} s"

    async def step(self, name: str, seconds: float, act: Callable[[], None], *, run: bool = False) -> None:
        """One row of the table: what searches got while this happened, and how the run ended."""
        start, outcome = time.monotonic(), "-"
        if run:
            outcome = await self.run(act)
        else:
            act()
        await asyncio.sleep(max(0.0, start + seconds - time.monotonic()))
        print(f"| {name} | {time.monotonic() - start:.0f} | {self.load.since(start)} | {outcome} |", flush=True)

    async def health(self) -> None:
        """Wait until all nodes are there and the index is green."""
        await healthy(self.nodes)


async def healthy(nodes: Sequence[Node]) -> None:
    """Wait until each of these nodes says that all are there and all indices are green, for five minutes at most."""
    async with httpx.AsyncClient(timeout=5, trust_env=False) as http:
        for _ in range(300):
            for node in nodes:
                node.check()
            found = []
            with suppress(httpx.HTTPError, ValueError):  # a starting node answers without JSON
                found = [(await http.get(f"{node.url}/_cluster/health")).json() for node in nodes]
            if found and all(
                one.get("number_of_nodes") == len(nodes) and one.get("status") == "green" for one in found
            ):
                return
            await asyncio.sleep(1)
    raise SystemExit(f"The cluster has not become green with {len(nodes)} nodes; see the logs of the nodes.")


async def under_queries(bench: Bench) -> None:
    """One node is killed while clients search; a run without it; both again."""
    one = bench.nodes[0]
    await bench.step("both nodes", 10, lambda: None)
    await bench.step("kill -9 of one under queries", 15, one.kill)
    await bench.step("run without it", 5, lambda: None, run=True)
    await bench.step("it starts again", 5, one.start)
    await bench.health()
    await bench.step("run with both", 5, lambda: None, run=True)


async def under_a_run(bench: Bench) -> None:
    """One node is killed in the middle of a run; the run again, when the node is back."""
    other = bench.nodes[1]
    await bench.step("kill -9 of one during a run", 15, other.kill, run=True)
    await bench.step("it starts again", 5, other.start)
    await bench.health()
    await bench.step("the run again", 5, lambda: None, run=True)


PARTS = {"queries": under_queries, "run": under_a_run}


async def measure(bench: Bench, parts: Sequence[str]) -> None:
    """These parts, and the errors of searches that failed."""
    for node in bench.nodes:
        node.start()
    await bench.health()
    print("first run:", await bench.run(), flush=True)
    await bench.health()
    bench.load.start()
    print("| step | s | searches | failed | last failure after s | p50 ms | p99 ms | longest ms | run |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for part in parts:
        await PARTS[part](bench)
    await bench.load.stop()
    for error in sorted({error for _, _, error in bench.load.done if error}):
        print("failed search:", error[:300])
    await bench.load.store.close()


def main() -> None:
    """Start the nodes, measure, stop them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the nodes are stopped, too
    nodes = cluster(arguments)
    try:
        asyncio.run(measure(Bench(nodes), arguments.parts))
    finally:
        for node in nodes:
            node.kill(signal.SIGTERM)


if __name__ == "__main__":
    main()
