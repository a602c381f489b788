"""One OpenSearch node for the hour: started, killed, and asked whether it is ready."""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
from contextlib import suppress

import httpx


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
