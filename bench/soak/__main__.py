"""Mixed load with a re-index every few minutes and faults at random: `python -m bench.soak --store lance --minutes 60 --out DIR`.

Starts a documentation site that changes, a fake language model, `docs-assistant serve` over LanceDB and SQLite or over an OpenSearch
and a PostgreSQL of its own, and clients of all kinds; runs `docs-assistant ingest` every few minutes. A seeded plan breaks parts.
Every error must be explained by a fault, and every link of every answer must exist on the site that the index was made from.

Writes requests, runs, faults and samples as JSON lines, `report.md` and `plot.svg` into DIR; `--report DIR` prints and draws
them again, also while the measurement goes on. The exit code is 1 if something didn't hold.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp

from bench.sizing import cpu
from bench.soak import report
from bench.soak.faults import RUN_FAULTS, Planned, Scene, broken, plan, plan_runs
from bench.soak.judge import Fault, Index, Seen
from bench.soak.model import Model
from bench.soak.node import Node
from bench.soak.site import Site
from bench.soak.traffic import ADMIN, READER, Traffic, clock, read_questions
from tests.end_to_end.program import Program, environment, free_port
from tests.postgres import Cluster

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-P", "-m", "docs_assistant.cli")
SAMPLED = 10.0  # seconds between two samples
SHOWN = 50  # problems in the report
DISK = 65_536  # bytes that a file of a run may have when the disk is full
LONGEST_RUN = 600.0
BROKEN = {"site half": 0.5, "site fifth": 0.2}  # shares of the pages


class Service:
    """`docs-assistant serve`, which can be started again."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder, self._settings = folder, settings
        self._program: Program | None = None

    @property
    def pid(self) -> int:
        """The process; 0 if there is none."""
        return self._program.process.pid if self._program and self._program.process.poll() is None else 0

    async def start(self) -> None:
        """Return when it is ready to answer."""
        self._program = Program(self._folder, "serve", "--port", str(self.port), **self._settings)
        async with aiohttp.ClientSession() as session, asyncio.timeout(300):
            while True:
                with suppress(aiohttp.ClientError):
                    async with session.get(f"{self.url}/health/ready") as response:
                        if response.status == 200:
                            return
                await asyncio.sleep(0.2)

    async def stop(self) -> None:
        """Ask it to end, and wait for its last answers."""
        if self._program:
            await asyncio.to_thread(self._program.end, signal.SIGTERM, seconds=180)

    async def restart(self) -> None:
        """Stop and start."""
        await self.stop()
        await self.start()


def sample(pid: int, at: float) -> dict[str, float]:
    """Memory, descriptors, threads and seconds of CPU of a process; zeros while there is none."""
    with suppress(OSError, LookupError):  # one that ends has no VmRSS
        status = dict(row.split(":", 1) for row in Path(f"/proc/{pid}/status").read_text().splitlines())
        used = cpu(pid)
        memory = int(status["VmRSS"].split()[0]) / 1024
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        return {
            "at": at,
            "pid": pid,
            "rss_mb": memory,
            "descriptors": descriptors,
            "threads": int(status["Threads"]),
            "cpu_s": used,
        }
    return {"at": at, "pid": 0, "rss_mb": 0, "descriptors": 0, "threads": 0, "cpu_s": 0}


class Soak:
    """One measurement."""

    def __init__(self, arguments: argparse.Namespace, site: Site, scene: Scene, settings: dict[str, str]) -> None:
        self.arguments, self.site, self.scene, self.settings = arguments, site, scene, settings
        self.seconds, self.now = 60.0 * arguments.minutes, clock()
        self.faults: list[Fault] = []
        self.index = Index()
        self._usual_run = 20.0
        self._written = 0
        self._running = False

    def write(self, name: str, row: Any) -> None:
        """Add a line to a file."""
        with (self.arguments.out / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row if isinstance(row, dict) else asdict(row), ensure_ascii=False) + "\n")

    async def reindex(self, fault: str) -> None:
        """One `docs-assistant ingest`, with this fault of the site or of the run."""
        site, began = self.site, self.now()
        self._running = True
        broken = Fault(fault, began)
        if fault:
            self._begin(broken)
        site.served, site.listed, site.broken = {}, None, BROKEN.get(fault, 0.0)
        if fault == "site down":
            await site.stop()
        limit = ("prlimit", f"--fsize={DISK}") if fault == "disk full" else ()
        process = await asyncio.create_subprocess_exec(
            *limit, *PROGRAM, "ingest", f"{site.url}/sitemap.xml", "--wait", "30", cwd=self.arguments.out, env=environment(self.settings),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        lasts = (
            random.Random(self.arguments.seed + began).uniform(0.1, 0.95) * self._usual_run
            if fault == "run killed"
            else LONGEST_RUN
        )
        told = asyncio.create_task(process.communicate())
        try:
            await asyncio.wait({told}, timeout=lasts)
        finally:  # also when the measurement is stopped
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
        text = (await told)[0].decode("utf-8", "replace").strip()
        if fault == "site down":
            await site.start()
        site.broken, broken.ended = 0.0, self.now()
        if fault:
            self.write("faults.jsonl", broken)
        run = Seen(
            "re-index", began, self.now(), f"exit {process.returncode}", detail=text[-400:], note={"fault": fault}
        )
        if not fault:
            self._usual_run = run.ended - run.began
        self.index.ran(run, dict(site.served), site.listed)
        self._running = False
        self.write("runs.jsonl", run)

    async def reindexes(self) -> None:
        """A run every few minutes, before each of which the site changes."""
        every = 60 * self.arguments.every
        runs = int((self.seconds - 1) // every)
        kinds = [kind for kind in RUN_FAULTS if kind != "disk full" or not self.scene.node]
        faults = plan_runs(runs, kinds, random.Random(self.arguments.seed + 1))
        for number in range(1, runs + 1):
            await asyncio.sleep(max(0.0, number * every - self.now()))
            self.site.change()
            await self.reindex(faults.get(number, ""))

    async def watch(self, traffic: Traffic, pid: Callable[[], int]) -> None:
        """Sample the process, and check and write what has ended, until cancelled."""
        last: dict[str, float] = {}
        while True:
            now = sample(pid(), self.now())
            same = last and last["pid"] == now["pid"]
            now["cpu"] = (now["cpu_s"] - last["cpu_s"]) / (now["at"] - last["at"]) if same else 0.0
            self.write("samples.jsonl", now)
            self.check(traffic)
            if last and now["at"] // 60 != last["at"] // 60:
                print(f"{now['at'] / 60:.0f} min: {len(traffic.seen)} requests, {now['rss_mb']:.0f} MB", flush=True)
            last = now
            await asyncio.sleep(SAMPLED)

    def check(self, traffic: Traffic) -> None:
        """Check the links of what has ended since the last call, and write it; not during a run, which may have published."""
        if self._running:
            return
        for seen in traffic.seen[self._written :]:
            for url in seen.links:
                seen.links[url] = self.index.verdict(
                    url.removeprefix(self.site.url), seen.began, seen.ended, self.site.versions
                )
            self.write("requests.jsonl", seen)
        self._written = len(traffic.seen)

    async def run(self, service: Service) -> None:
        """Index, start, and let clients, runs and faults go on together."""
        self.write(
            "settings.json", {"seconds": self.seconds, "store": self.arguments.store, "seed": self.arguments.seed}
        )
        await self.reindex("")
        await service.start()
        started = self.now()
        self.now = clock()  # the first run was before the beginning
        for state in self.index.states:
            state.since -= started
        planned = plan(self.scene.kinds(), self.seconds, random.Random(self.arguments.seed + 2))
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=2), timeout=aiohttp.ClientTimeout(total=None)
        ) as session:
            questions = read_questions(ROOT / "eval/sets/docs.jsonl")
            traffic = Traffic(
                service.url, self.site.url, questions, self.now, session, random.Random(self.arguments.seed + 3)
            )
            watching = asyncio.create_task(self.watch(traffic, lambda: service.pid))
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(traffic.run(self.arguments.rate, self.seconds))
                    group.create_task(self.reindexes())
                    for one in planned:
                        group.create_task(self._break(one))
            finally:
                watching.cancel()
                self.check(traffic)

    def _begin(self, fault: Fault) -> None:
        self.faults.append(fault)
        self.write("faults.jsonl", fault)

    async def _break(self, planned: Planned) -> None:
        fault = Fault(planned.kind, 0.0)
        await asyncio.sleep(max(0.0, planned.start - self.now()))
        fault.began = self.now()
        self._begin(fault)
        try:
            async with broken(planned.kind, self.scene):
                await asyncio.sleep(planned.lasts)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is among the results
            fault.detail = repr(error)
            print(f"{planned.kind} at {fault.began:.0f} s: {error!r}", flush=True)
        fault.ended = self.now()
        self.write("faults.jsonl", fault)


async def measure(arguments: argparse.Namespace) -> None:
    """Start everything, measure, stop everything."""
    out: Path = arguments.out
    site, model = Site(ROOT / "docs", arguments.seed), Model(arguments.seed)
    async with AsyncExitStack() as stack:
        await site.start()
        stack.push_async_callback(site.stop)
        await model.start()
        stack.push_async_callback(model.stop)
        model.site = site.url
        node = cluster = None
        store, database = str(out / "index"), f"sqlite:///{out / 'conversations.db'}"
        if arguments.store == "opensearch":
            node = Node(arguments, "soak", free_port(), {"soak": free_port()})
            node.start()
            stack.callback(node.kill)
            await node.ready()
            (out / "postgresql").mkdir()
            cluster = await asyncio.to_thread(Cluster, out / "postgresql")
            stack.callback(cluster.stop)
            store, database = f"{node.url.replace('http', 'opensearch', 1)}/soak", cluster.new_database()
        settings = {
            "DOCS_STORE": store, "DOCS_DATABASE": database, "DOCS_LLM_URL": model.url, "DOCS_LLM_MODEL": "fake",
            "DOCS_API_KEYS": READER, "DOCS_ADMIN_KEYS": ADMIN, "DOCS_RATE_LIMIT": "", "DOCS_LLM_TIMEOUT": "20", "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        service = Service(out / "service", settings)
        stack.push_async_callback(service.stop)
        scene = Scene(model, service, out / "index", out / "conversations.db", node, cluster)
        await Soak(arguments, site, scene, settings).run(service)


def tell(folder: Path) -> int:
    """Print the table, draw the plot; 1 if something didn't hold."""
    measured = report.load(folder)
    problems = report.verdict(measured)
    shown = "\n".join(f"- {problem}" for problem in problems[:SHOWN]) or "Everything held."
    shown += f"\n- … and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    text = f"{report.table(measured)}\n\n{shown}\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    (folder / "plot.svg").write_text(report.plot(measured), encoding="utf-8")
    print(text)
    return 1 if problems else 0


def main() -> int:
    """Measure, or tell what was measured."""
    parser = argparse.ArgumentParser(
        prog="bench.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=("lance", "opensearch"), default="lance")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=5, help="minutes between two runs")
    parser.add_argument("--rate", type=float, default=4, help="requests per second")
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--out", type=Path, help="folder that is made for index, logs and results")
    parser.add_argument("--report", type=Path, help="only tell what was measured into this folder")
    parser.add_argument("--server", type=Path, help="an unpacked OpenSearch with the k-NN plugin")
    parser.add_argument("--user", default="", help="user that runs OpenSearch, which doesn't run as root")
    arguments = parser.parse_args()
    if arguments.report:
        return tell(arguments.report)
    if not arguments.out or (arguments.store == "opensearch" and not arguments.server):
        parser.error("--out is needed, and --server for OpenSearch")
    arguments.out = arguments.folder = arguments.out.resolve()
    arguments.out.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is stopped, too
    asyncio.run(measure(arguments))
    return tell(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
