"""`docs-assistant ingest` in processes that can be killed: forked from one that has imported all, as importing takes seconds."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
PRELOADED = (
    "docs_assistant.cli",
    "app.models.openai",
    "app.index.embedded.draft",
    "app.index.opensearch.store",
    "ingestion.run",
    "lancedb",
)
FORKS.set_forkserver_preload(list(PRELOADED))
BATCH = 12
PATIENCE = 300.0


class Started:
    """A run that waits to be let go. `limit` is the largest file that it may write, in bytes."""

    def __init__(self, folder: Path, arguments: Sequence[str], settings: Mapping[str, str], limit: int | None) -> None:
        self._folder = folder / uuid.uuid4().hex
        self._folder.mkdir(parents=True)
        self._process = FORKS.Process(target=_run, args=(str(self._folder), tuple(arguments), dict(settings), limit))
        self._process.start()

    def ready(self) -> float:
        """Returns, with the time, when it could begin."""
        deadline = time.monotonic() + PATIENCE
        while not (self._folder / "ready").exists():
            assert self._process.is_alive(), self.err
            assert time.monotonic() < deadline, self.err
            time.sleep(0.01)
        return time.monotonic()

    def go(self) -> Started:
        """Let it run."""
        (self._folder / "gate").touch()
        return self

    @property
    def runs(self) -> bool:
        """Whether it hasn't ended."""
        return self._process.is_alive()

    @property
    def err(self) -> str:
        """Standard error so far."""
        return (self._folder / "err").read_text("utf-8") if (self._folder / "err").exists() else ""

    def wait(self) -> int:
        """Its exit code."""
        self._process.join(PATIENCE)
        assert self._process.exitcode is not None, self.err
        return self._process.exitcode

    def kill(self) -> None:
        """As `kill -9`; one that has ended is left alone."""
        self._process.kill()
        self._process.join(PATIENCE)


def _run(folder: str, arguments: Sequence[str], settings: Mapping[str, str], limit: int | None) -> None:
    """In the new process: the program with small batches, its output in files."""
    import app.index.embedded.draft
    import app.index.opensearch.writing
    from docs_assistant.cli import main

    here, parent = Path(folder), os.getppid()
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(here / name, os.O_WRONLY | os.O_CREAT), number)
    for name in [name for name in os.environ if name.startswith("DOCS_") or name.lower().endswith("_proxy")]:
        del os.environ[name]
    os.environ.update(settings)
    os.chdir(here)
    sys.argv = ["docs-assistant", *arguments]
    app.index.embedded.draft.BATCH = app.index.opensearch.writing.BATCH_ROWS = BATCH
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    (here / "ready").touch()
    while not (here / "gate").exists():
        if os.getppid() != parent:  # the tests were killed, and the fork server ended with them
            return
        time.sleep(0.002)
    sys.exit(main())
