"""Runs of ingestion that were asked for over HTTP: each a process of its own, so that answers don't get slower."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from app.core.errors import RequestError, quoted

log = logging.getLogger("app.api")

State = Literal["queued", "running", "done", "failed"]
MAX_RUNS = 10
STOP_SECONDS = 5.0
"""Seconds that a run may take to let go of the store when the service ends."""
MAX_LINE_BYTES = 2**20
MAX_LINES = 20
ERROR_PREFIX = "docs-assistant: "


@dataclass(slots=True)
class Run:
    """One run; times are ISO 8601 in UTC, `by` says who asked for it, `progress` is the last line that it wrote."""

    id: str
    sites: tuple[str, ...]
    by: str
    queued_at: str
    state: State = "queued"
    started_at: str | None = None
    finished_at: str | None = None
    exit_code: int | None = None
    progress: str = ""
    error: str = ""
    report: Mapping[str, Any] | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))

    @property
    def finished(self) -> bool:
        """True when nothing of it goes on."""
        return self.state in ("done", "failed")

    def begin(self) -> None:
        """Its process is there."""
        self.state, self.started_at = "running", _now()

    def add_line(self, line: str) -> None:
        """It wrote this."""
        self.lines.append(line)
        self.progress = line

    def end(self, code: int, output: bytes) -> None:
        """Its process ended; the output is its report."""
        self.exit_code = code
        try:
            report = orjson.loads(output)
        except orjson.JSONDecodeError:
            report = None
        self.report = report if isinstance(report, dict) else None
        if self.report and self.report.get("published"):
            self.state, self.finished_at = "done", _now()
        else:
            self.fail(self._reason(code))

    def fail(self, reason: str) -> None:
        """It came to nothing."""
        self.state, self.finished_at, self.error = "failed", _now(), reason

    def _reason(self, code: int) -> str:
        lines = list(self.lines)
        said = next((i for i in reversed(range(len(lines))) if lines[i].startswith(ERROR_PREFIX)), len(lines) - 1)
        reason = "\n".join(lines[max(said, 0) :]).removeprefix(ERROR_PREFIX)
        return reason or (f"The run was killed by signal {-code}." if code < 0 else f"The run ended with code {code}.")


class Runs:
    """Starts runs, one at a time, and remembers the last ones; closing it stops the one that is under way.

    `command` indexes what its environment says, prints a report as JSON, and progress and errors to standard error.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._runs: deque[Run] = deque(maxlen=MAX_RUNS)
        self._task: asyncio.Task[None] | None = None
        self._process: Process | None = None
        self._closing = False

    def all(self) -> tuple[Run, ...]:
        """Those remembered, newest first."""
        return tuple(self._runs)

    def get(self, id: str) -> Run:  # noqa: A002  # as the API has it
        """The run of this id. Raises `RequestError` with the code `run_not_found`."""
        for run in self._runs:
            if run.id == id:
                return run
        raise RequestError(
            f"There is no run {quoted(id)} here: only the last {MAX_RUNS} since the service was started are known.",
            code="run_not_found",
        )

    def start(self, sites: Sequence[str], by: str, environment: Mapping[str, str], options: Sequence[str] = ()) -> Run:
        """A new run over these sites, which the environment tells the command; `options` are added to it.

        Raises `RequestError` with the code `run_under_way` while another one goes on.
        """
        if self._runs and not self._runs[0].finished:
            other = self._runs[0]
            raise RequestError(
                f"A run is under way: {other.id}, asked for at {other.queued_at} by {other.by}. "
                "Start another one when it is over.",
                code="run_under_way",
            )
        run = Run(f"run-{secrets.token_hex(6)}", tuple(sites), by, _now())
        self._runs.appendleft(run)
        log.info("ingest queued run=%s by=%r sites=%d", run.id, by, len(run.sites))
        self._task = asyncio.create_task(self._follow(run, environment, options))
        return run

    async def close(self) -> None:
        """Stop the run that is under way: it may let go of the store for a few seconds, then it is killed."""
        self._closing = True
        if self._task is None or self._task.done():
            return
        self._interrupt()
        await asyncio.wait([self._task], timeout=STOP_SECONDS)
        if self._process and self._process.returncode is None:
            self._process.kill()
        await asyncio.wait([self._task], timeout=STOP_SECONDS)

    async def _follow(self, run: Run, environment: Mapping[str, str], options: Sequence[str]) -> None:
        try:
            await self._run(run, environment, options)
        except OSError as error:
            run.fail(f"The run can't be started: {error}.")
        except Exception as error:
            log.exception("ingest broke run=%s", run.id)
            run.fail(f"The service lost the run: {error!r}. See its log.")
        finally:
            if self._process and self._process.returncode is None:
                self._process.kill()
            self._process = None
            log.info("ingest ended run=%s state=%s code=%s error=%r", run.id, run.state, run.exit_code, run.error)

    async def _run(self, run: Run, environment: Mapping[str, str], options: Sequence[str]) -> None:
        # a session of its own: Ctrl-C in a terminal reaches the service, and the service stops the run
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            *options,
            # an address may hold a password, and arguments can be read by every user of the machine
            env={**os.environ, **environment},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=MAX_LINE_BYTES,
            start_new_session=True,
        )
        run.begin()
        if self._closing:
            self._interrupt()
        assert process.stdout is not None
        assert process.stderr is not None
        output, _ = await asyncio.gather(process.stdout.read(), _read_lines(process.stderr, run))
        code = await process.wait()
        run.end(code, output)
        if self._closing and run.state == "failed":
            run.error = "The service was stopped before the run was over."

    def _interrupt(self) -> None:
        # the signal of Ctrl-C: the command gives back the right to write before it ends
        if self._process and self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)


async def _read_lines(stream: asyncio.StreamReader, run: Run) -> None:
    async for line in stream:
        if text := line.decode(errors="replace").strip():
            run.add_line(text)
            log.info("ingest run=%s says %r", run.id, text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
