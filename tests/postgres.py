"""A PostgreSQL cluster of its own on a free port, for as long as the tests run."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.program import free_port

OPTIONS = "-c fsync=off -c listen_addresses=127.0.0.1 -c max_connections=200"


def programs() -> Path:
    """The directory of PostgreSQL's programs. The test skips if there is none, and fails in CI."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no PostgreSQL: apt-get install postgresql")
    return found[-1].parent


class Cluster:
    """A running cluster."""

    def __init__(self, folder: Path) -> None:
        self._programs, self.folder = programs(), folder
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self._databases = 0
        if self._as:
            shutil.chown(folder, "postgres")
        self.port = free_port()
        self._run("initdb", "-D", str(folder / "data"), "-U", "docs", "-A", "trust", "--no-sync")
        self.start()

    def _run(self, name: str, *arguments: str) -> None:
        command = [*self._as, str(self._programs / name), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"{OPTIONS} -p {self.port} -k {self.folder}"
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"), "-w", "-o", options, "start"
        )

    def stop(self) -> None:
        """Stop it as a machine that loses power does."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")

    def new_database(self) -> str:
        """The address of an empty database."""
        self._databases += 1
        name = f"docs{self._databases}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "docs", name)
        return f"postgresql://docs@127.0.0.1:{self.port}/{name}"


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster that is gone at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="docs-postgresql-") as folder:
        running = Cluster(Path(folder))
        try:
            yield running
        finally:
            running.stop()
