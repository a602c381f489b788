"""Silent and slow connections and unfinished bodies against the service as the command starts it: how soon /health answers, and what it costs.

python -m bench.connections [--silent 3000] [--slow 300] [--unfinished 1000] [--seconds 30]
"""

import argparse
import asyncio
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import httpx

from bench.sizing import cpu

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


async def silent(port: int) -> None:
    """Opens a connection again whenever it was closed, and says nothing."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await reader.read()
            writer.transport.abort()
        await asyncio.sleep(0.2)


async def slow(port: int, text: bytes) -> None:
    """Sends the text byte by byte, ten a second, over and over."""
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            for byte in text:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.1)
            writer.transport.abort()
        await asyncio.sleep(0.2)


async def unfinished(port: int, number: int) -> None:
    """Sends 1.95 MB of a longer body and stops, from an address of this machine that 50 others have too."""
    while True:
        with suppress(OSError):
            address = (f"127.0.1.{number // 50 + 1}", 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=address)
            writer.write(HEAD + b"content-length: 1990000\r\n\r\n" + b" " * 1_950_000)
            await reader.read()
            writer.transport.abort()
        await asyncio.sleep(0.2)


def probe(port: int, seconds: float, pid: int) -> tuple[list[float], int]:
    """Seconds that each /health took, on a new connection each, -1 for one that failed; and the most descriptors seen."""
    taken, seen, end = list[float](), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            connection.getresponse().read()
            taken.append(time.monotonic() - began)
        except (OSError, HTTPException):
            taken.append(-1)
        connection.close()
        seen = max(seen, opened(pid))
        time.sleep(0.1)
    return taken, seen


async def attack(port: int, arguments: argparse.Namespace) -> None:
    """Keeps all connections up until this process is ended."""
    text = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-slow: " + b"a" * 9000
    body = HEAD + b"content-length: 9000\r\n\r\n" + b"{" * 9000
    slow_ones = (slow(port, body if n % 2 else text) for n in range(arguments.slow))
    if arguments.bodies:
        await asyncio.gather(*(unfinished(port, n) for n in range(arguments.unfinished)))
    await asyncio.gather(*(silent(port) for _ in range(arguments.silent)), *slow_ones)


def row(name: str, port: int, pid: int, seconds: float) -> None:
    """One line of the table."""
    used, began = cpu(pid), time.monotonic()
    taken, descriptors = probe(port, seconds, pid)
    fine = [t for t in taken if t >= 0] or [float("nan")]
    busy = 100 * (cpu(pid) - used) / (time.monotonic() - began)
    print(
        f"{name:24} {len(taken):6} {len(taken) - len(fine):6} {1000 * statistics.median(fine):11.1f}"
        f" {1000 * max(fine):8.1f} {descriptors:13} {resident(pid):8.0f} {busy:7.1f}",
        flush=True,
    )


def opened(pid: int) -> int:
    """Descriptors of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def resident(pid: int) -> float:
    """Its memory in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def served(hard: int) -> Iterator[tuple[int, int]]:
    """Port and process id of a service that may have this many descriptors, 1,024 of them without asking."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    limited = f'ulimit -Sn {min(1024, hard)}; ulimit -Hn {hard}; exec "$@"'
    command = [sys.executable, "-P", "-m", "docs_assistant.cli", "serve", "--port", str(port)]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DOCS_LOG_LEVEL": "warning", "DOCS_STORE": f"{folder}/data"}
        service = subprocess.Popen(["sh", "-c", limited, "sh", *command], cwd=folder, env=environment)
        try:
            wait_until_served(port)
            yield port, service.pid
        finally:
            service.terminate()
            service.wait(20)


def wait_until_served(port: int) -> None:
    """Returns once /health answers; gives up after half a minute."""
    for _ in range(300):
        try:
            httpx.get(f"http://127.0.0.1:{port}/health", timeout=5, trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    sys.exit("The service did not start.")


def main() -> None:
    """Start a service and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--silent", type=int, default=3000)
    parser.add_argument("--slow", type=int, default=300)
    parser.add_argument("--unfinished", type=int, default=1000)
    parser.add_argument("--bodies", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    parser.add_argument("--descriptors", type=int, default=hard, help="hard limit of the service")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if arguments.port:
        asyncio.run(attack(arguments.port, arguments))
    with served(arguments.descriptors) as (port, pid):
        print(f"{'':24} probes failed   median ms   max ms   descriptors   RSS MB   CPU %", flush=True)
        row("before", port, pid, 3)
        # in a process of its own, so that its work isn't measured
        for name, more in (
            (f"{arguments.silent} silent, {arguments.slow} slow", []),
            (f"{arguments.unfinished} unfinished bodies", ["--bodies"]),
        ):
            command = [sys.executable, "-m", "bench.connections", *sys.argv[1:], "--port", str(port), *more]
            attackers = subprocess.Popen(command)
            row(name, port, pid, arguments.seconds)
            attackers.kill()
            attackers.wait()
            row("after", port, pid, 3)


if __name__ == "__main__":
    main()
