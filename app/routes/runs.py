"""Ingestion runs over HTTP: the routes and the processes of the runs."""

import asyncio
import logging
import os
import re
import secrets
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import NoIndex, RequestError, quoted
from app.core.generation import SourceRecord
from app.core.log_message import LogMessage, masked
from app.core.settings import Settings
from app.http.bodies import JsonResponse, filled, unstored
from app.index.kept_sites import KeptSites, without_user
from app.index.run_history import RunOrigin
from app.routes.answer_models import IngestRun, IngestRunList
from app.routes.description import ADMIN, ADMIN_ERRORS, body_of, refusals
from app.routes.request_models import IngestRequest
from app.routes.routers import router_of
from app.routes.service import Service

log = logging.getLogger("app.http")

State = Literal["queued", "running", "done", "failed"]
MAX_RUNS = 10
STOP_SECONDS = 5.0
"""Time for a run to release the store when the service stops, in seconds."""
LIST_SECONDS = 60.0
"""Time to read the sitemaps of one site."""
MAX_LINE_BYTES = 2**20
LONGEST_LINE = 10_000  # characters that are kept of one
MAX_LINES = 20
ERROR_PREFIX = "docs-assistant: "
STAGE = r"(?P<stage>[A-Z][a-z ]{2,40})"
BEGINS = re.compile(rf"{STAGE}(?:: (?P<total>\d{{1,9}}))? \.\.\.$")
GOES_ON = re.compile(
    rf"{STAGE}: (?P<done>\d{{1,9}})(?: of (?P<total>\d{{1,9}}) \(\d{{1,3}} %\))?, [\d.]{{1,12}} a second"
)
"""Lines of `ingestion.progress.LogProgress`."""


@dataclass(slots=True)
class Run:
    """One run. Times are ISO 8601 in UTC, but `ended` is `finished_at` in exact Unix seconds; `by` is who started it; `progress` is its last line of output.

    `stage` is what it does now, such as "Pages", with how many are done of how many; each is None if that isn't known.
    """

    id: str
    sites: tuple[str, ...]
    by: str
    queued_at: str
    state: State = "queued"
    started_at: str | None = None
    finished_at: str | None = None
    ended: float = 0.0
    exit_code: int | None = None
    progress: str = ""
    stage: str = ""
    done: int | None = None
    total: int | None = None
    cancelled_by: str = ""
    error: str = ""
    report: Mapping[str, Any] | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))

    @property
    def finished(self) -> bool:
        """True once the run is done or has failed."""
        return self.state in ("done", "failed")

    def begin(self) -> None:
        """Mark the run as running."""
        self.state, self.started_at = "running", _now()

    def add_line(self, line: str) -> None:
        """Record a line of output."""
        self.lines.append(line)
        self.progress = line
        if found := BEGINS.match(line) or GOES_ON.match(line):
            known = found.groupdict()
            self.stage = known["stage"]
            self.done = int(known.get("done") or 0)
            self.total = int(known["total"]) if known["total"] else None

    def end(self, code: int, output: bytes) -> None:
        """Record the exit code and parse the report from the output."""
        self.exit_code = code
        try:
            report = orjson.loads(output)
        except orjson.JSONDecodeError:
            report = None
        self.report = report if isinstance(report, dict) else None
        if self.report and self.report.get("published"):
            self.state, self.finished_at, self.ended = "done", _now(), time.time()
        else:
            self.fail(self._reason(code))

    def fail(self, reason: str) -> None:
        """Mark the run as failed for this reason."""
        self.state, self.finished_at, self.ended, self.error = "failed", _now(), time.time(), reason

    def _reason(self, code: int) -> str:
        lines = list(self.lines)
        said = next((i for i in reversed(range(len(lines))) if lines[i].startswith(ERROR_PREFIX)), -1)
        if said < 0 and code < 0:  # its last line is one of progress
            return f"The run was killed by signal {-code}."
        return "\n".join(lines[said:]).removeprefix(ERROR_PREFIX) or f"The run ended with code {code}."


class Runs:
    """Starts runs, one at a time, and keeps the last ones. Closing it stops the current run.

    `command` indexes sites, and writes a JSON report to standard output and progress and errors
    to standard error.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._runs: deque[Run] = deque(maxlen=MAX_RUNS)
        self._task: asyncio.Task[None] | None = None
        self._process: Process | None = None
        self._closing = False
        self._listing = asyncio.Lock()

    @property
    def can_start(self) -> bool:
        """True if there is a command for runs."""
        return bool(self._command)

    def all(self) -> tuple[Run, ...]:
        """The last runs, newest first."""
        return tuple(self._runs)

    @property
    def last(self) -> Run | None:
        """The last run that is over."""
        return next((run for run in self._runs if run.finished), None)

    def get(self, id: str) -> Run:  # noqa: A002  # as in the API
        """The run of this id. Raises `RequestError` with the code `run_not_found`."""
        for run in self._runs:
            if run.id == id:
                return run
        raise RequestError(
            f"There is no run {quoted(id)} here: an instance knows only the last {MAX_RUNS} that it has started itself.",
            code="run_not_found",
        )

    def start(self, sites: Sequence[str], by: str, options: Sequence[str]) -> Run:
        """Start a run of these sites, which are among the `options` for the command unless it chooses them by itself.

        Raises `RequestError` with the code `run_under_way` while another run is in progress.
        """
        if self._runs and not self._runs[0].finished:
            other = self._runs[0]
            raise RequestError(
                f"A run is under way: {other.id}, asked for at {other.queued_at} by {other.by}. "
                "Start another one when it is over.",
                code="run_under_way",
            )
        run = Run(f"run-{secrets.token_hex(6)}", tuple(sites), by, _now())
        origin = RunOrigin("http", by.partition(" from ")[0], run.id)  # an index keeps no addresses of people
        self._runs.appendleft(run)
        log.info(LogMessage("ingest queued", run=run.id, by=by, sites=len(run.sites)))
        self._task = asyncio.create_task(self._follow(run, origin.environment, options))
        return run

    def cancel(self, id: str, by: str) -> Run:  # noqa: A002  # as in the API
        """Interrupt this run, which ends soon as failed. Raises `RequestError` if it is unknown, or over."""
        run = self.get(id)
        if run.finished:
            raise RequestError(f"The run {run.id} is over: it ended at {run.finished_at}.", code="run_over")
        run.cancelled_by = by
        self._interrupt()
        return run

    async def close(self) -> None:
        """Interrupt the current run, wait for it to release the store, and kill it after a few seconds."""
        self._closing = True
        task = self._task
        if task is None or task.done():
            return
        self._interrupt()
        await asyncio.wait([task], timeout=STOP_SECONDS)
        if self._process and self._process.returncode is None:
            self._process.kill()
        await asyncio.wait([task], timeout=STOP_SECONDS)

    async def _follow(self, run: Run, environment: Mapping[str, str], options: Sequence[str]) -> None:
        try:
            await self._run(run, environment, options)
        except OSError as error:
            run.fail(f"The run can't be started: {error}.")
        except Exception as error:
            log.exception(LogMessage("ingest broke", run=run.id))
            run.fail(f"The service lost the run: {error!r}. See its log.")
        finally:
            if self._process and self._process.returncode is None:
                self._process.kill()
            self._process = None
            failed = run.state == "failed" and not run.cancelled_by and not self._closing
            level = logging.WARNING if failed else logging.INFO
            log.log(level, LogMessage("ingest ended", run=run.id, state=run.state, code=run.exit_code, error=run.error))

    async def _run(self, run: Run, environment: Mapping[str, str], options: Sequence[str]) -> None:
        process = self._process = await self._begun(environment, options)
        run.begin()
        if self._closing or run.cancelled_by:
            self._interrupt()
        assert process.stdout is not None
        assert process.stderr is not None
        output, _ = await asyncio.gather(process.stdout.read(), _read_lines(process.stderr, run))
        code = await process.wait()
        run.end(code, output)
        if self._closing and run.state == "failed":
            run.error = "The service was stopped before the run was over."
        elif run.cancelled_by and run.state == "failed":
            run.error = f"Cancelled by {run.cancelled_by}."

    async def _begun(self, environment: Mapping[str, str], options: Sequence[str]) -> Process:
        # a new session: Ctrl-C in a terminal reaches only the service, which then stops the run
        return await asyncio.create_subprocess_exec(
            *self._command,
            *options,
            # not as arguments: an address may contain a password, and every user of the machine can read arguments
            env={**os.environ, **environment},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=MAX_LINE_BYTES,
            start_new_session=True,
        )

    async def listed(self, options: Sequence[str]) -> Mapping[str, Any]:
        """What `ingest --list` says with these options; one at a time. Raises `RequestError` that says why it can't."""
        async with self._listing:
            process = await self._begun({}, [*options, "--list", "--json"])
            try:
                output, errors = await asyncio.wait_for(process.communicate(), LIST_SECONDS)
            except TimeoutError as error:
                raise RequestError(f"The pages of the site can't be listed in {LIST_SECONDS:.0f} s.") from error
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.communicate()
        if process.returncode == 0:
            pages: Mapping[str, Any] = orjson.loads(output)
            return pages
        raise RequestError(masked(errors.decode(errors="replace")).strip().rpartition(ERROR_PREFIX)[2], param="url")

    def _interrupt(self) -> None:
        # like Ctrl-C: the command releases the write lock before it exits
        if self._process and self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)


async def _read_lines(stream: asyncio.StreamReader, run: Run) -> None:
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # longer than any of ours: what was read of it is left out
            continue
        if not line:
            return
        if text := line.decode(errors="replace").strip()[:LONGEST_LINE]:
            run.add_line(text)
            log.info(LogMessage("ingest says", run=run.id, text=text))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


async def chosen_sites(service: Service, wanted: Sequence[str] | None) -> Sequence[str]:
    """The wanted sites, with passwords masked; by default all configured ones, else all recorded ones, and the added ones.

    Raises `RequestError` for others, and for paused ones.
    """
    recorded, kept = await recorded_sites(service)
    known, fixed = configured(service.settings), configured(service.settings, kept)
    added = [one for one in kept.added if one not in kept.paused]
    readable = [one.url for one in recorded if not one.unreadable and one.url not in kept.paused]
    if not known and not recorded and not kept.added:
        raise RequestError(
            "No site is configured to be indexed: set DOCS_SITES or DOCS_SOURCES. The index has no site to read again, either.",
            code="no_sites",
        )
    if wanted is None and known:
        return (*fixed, *added)
    shown = [*fixed, *(url for url in dict.fromkeys((*readable, *added)) if url not in known)]
    for i, site in enumerate(wanted or ()):
        if masked(site) not in shown:
            raise RequestError(
                f"sites[{i}]: {quoted(masked(site))} is neither configured nor in the index, or it is paused. Write it as DOCS_SITES, "
                f"DOCS_SOURCES or the index have it: {', '.join(shown)}.",
                param=f"sites[{i}]",
            )
    return shown if wanted is None else [name for name in shown if name in map(masked, wanted)]


def configured(settings: Settings, kept: KeptSites | None = None) -> list[str]:
    """The sites of DOCS_SITES and the file of DOCS_SOURCES, with passwords masked, without those that are paused."""
    all_ = (*settings.sites, *filter(None, (settings.sources,)))
    return [masked(site) for site in all_ if not kept or without_user(site) not in kept.paused]


def beside(settings: Settings, records: Iterable[SourceRecord]) -> list[str]:
    """The addresses of the recorded sources that can be read again and aren't configured."""
    known = {without_user(site) for site in settings.sites}
    return [one.url for one in records if not one.unreadable and known.isdisjoint((one.url, *one.roots))]


async def recorded_sites(service: Service) -> tuple[tuple[SourceRecord, ...], KeptSites]:
    """The sources of the index that runs write to, and its list of sites."""
    used = service.assistants.used()
    if "" not in used:
        return (), KeptSites()
    store = used[""].store
    kept = await KeptSites.of(store)
    try:
        return (await store.live()).info.sources, kept
    except NoIndex:
        return (), kept


@dataclass(frozen=True)
class Ingest:
    """The handlers of the routes; all require an admin key."""

    service: Service
    runs: Runs

    async def start(self, request: Request) -> Response:
        """202 with the new run."""
        by = started_by(self.service, request)
        wanted = await self.service.read(request, IngestRequest, default=b"{}")
        sites = await chosen_sites(self.service, wanted.sites)
        options = [f"--collection={name}" for name in wanted.collections or ()] + ["--force"] * wanted.force
        options += [f"--known={site}" for site in sites] if wanted.sites else []
        run = self.runs.start(sites, by, options)
        place = f"{request.scope.get('root_path', '')}/v1/ingest/{run.id}"
        return JsonResponse(run_object(run), 202, {"location": place})

    async def list_runs(self, request: Request) -> Response:
        """The last runs, newest first, without their reports."""
        started_by(self.service, request)
        return unstored(IngestRunList(object="list", data=[run_object(run) for run in self.runs.all()]))

    async def get_run(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """One run with its report."""
        started_by(self.service, request)
        run = self.runs.get(id)
        return unstored({**run_object(run), "report": run.report})

    async def cancel(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """202 with the run, which ends soon; the index stays as it is."""
        by = started_by(self.service, request)
        return unstored(run_object(self.runs.cancel(id, by)), 202)


def operator_of(service: Service, request: Request) -> str:
    """Check the admin key; its name, as files that are kept with an index have it."""
    access = service.check_admin(request, "Nothing can be started or changed")
    return f"key {access.key}" if access.key else "this machine"


def started_by(service: Service, request: Request) -> str:
    """The same with the address of the client, for the log and the runs of this process."""
    return f"{operator_of(service, request)} from {request.client.host if request.client else 'unknown'}"


def run_object(run: Run) -> IngestRun:
    """The run without its report."""
    counts = run.report.get("counts") if run.report else None
    body = filled(IngestRun, run, object="ingest.run", counts=counts)
    del body["report"]  # it is large, so lists are without it
    return body


def router(ingest: Ingest) -> APIRouter:
    """The routes of runs; none if the service can't start any."""
    if not ingest.runs.can_start:
        return APIRouter()
    unknown = ADMIN_ERRORS | refusals({404: "There is no such run."})
    refused = ADMIN_ERRORS | refusals({
        400: "The site is neither configured nor in the index, or no site is.",
        409: "Another run is in progress; the message says which, since when and by whom.",
    })  # fmt: skip
    starts = "Starts a run in a separate process, one at a time. Call it after each deployment of the documentation."
    return router_of("Operation", (
        ("ingest", "POST", "/v1/ingest", ingest.start, "Index the configured or indexed sites again", IngestRun, refused,
         {"access": ADMIN, "status": 202, "description": starts, **body_of(IngestRequest, required=False)}),
        ("ingest_runs", "GET", "/v1/ingest", ingest.list_runs, "List the last runs, newest first", IngestRunList, ADMIN_ERRORS,
         {"access": ADMIN}),
        ("ingest_run", "GET", "/v1/ingest/{id}", ingest.get_run, "Read one run with its report", IngestRun, unknown,
         {"access": ADMIN}),
        ("ingest_cancel", "POST", "/v1/ingest/{id}/cancel", ingest.cancel, "Stop a run", IngestRun,
         unknown | refusals({409: "The run is over."}),
         {"access": ADMIN, "status": 202, "description": "The run ends soon as failed; the index stays as it is."}),
    ))  # fmt: skip
