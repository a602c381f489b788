"""`docs-assistant serve` with few descriptors: more silent connections than it can have, and it answers all the same."""

import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.program import Program, free_port

FEW = 'ulimit -Sn 100; ulimit -Hn 200; exec "$@"'


@pytest.mark.slow
def test_more_silent_connections_than_descriptors_leave_health_reachable(tmp_path: Path):
    """The soft limit of 100 descriptors is raised to 200, and 300 connections are open at no time."""
    port = free_port()
    command = ("sh", "-c", FEW, "sh", sys.executable, "-P", "-m", "docs_assistant.cli")
    service = Program(tmp_path, "serve", "--port", str(port), command=command)
    service.url = f"http://127.0.0.1:{port}"
    try:
        service.wait_until_served()
        with ExitStack() as stack:
            for n in range(300):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                if n % 50 == 49:
                    assert httpx.get(f"{service.url}/health", timeout=60).json()["status"] == "unavailable"
            assert len(list(Path(f"/proc/{service.process.pid}/fd").iterdir())) < 200
    finally:
        service.end()
    assert "Too many open files" not in service.err
