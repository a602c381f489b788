"""Problems for an operator to look at, each with what to do, from the states of the indexes and the parts; a web hook is told those
of runs, whatever started them.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from app.assistants.health import IndexState, PartState, embedder_mismatch
from app.core.errors import AssistantError
from app.core.log_message import REQUEST_ID, LogMessage, masked
from app.core.settings import Settings
from app.core.types import Page
from app.index.run_history import RunHistory, runs_of
from app.models import Embedder
from app.routes.admin.answer_models import ProblemBody, RecentProblem
from app.routes.runs import Run, Runs

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants

log = logging.getLogger("app.http")

LOOK = "Look at the run in Runs or in the log, mend what it names, and start a run again."
LOOK_AT_SITE = "Mend the site or its address, or pause it in Sites."
EXAMINE = "Run `docs-assistant check --exam`, which takes some minutes, and restart the service."
AFTER_EXAM = "Nothing. After a change of the model, the next start takes the exam again."
RUN_AGAIN = "Start a run in Runs, or with `docs-assistant ingest`."


@dataclass(frozen=True, slots=True)
class Inspected:
    """An index with its pages and runs; there are no pages if it can't be read."""

    name: str
    embedder: Embedder
    state: IndexState
    pages: Sequence[Page]
    runs: RunHistory
    run: Run | None = None
    """The last one that this process has started; the history lacks those that were killed."""
    first_run: Mapping[str, Any] | None = None
    """How far the run is that fills an empty index, see `app.index.run_history.run_reading`."""

    @property
    def last_result(self) -> str:
        """The result of the last run; empty without any."""
        return max(self.runs.ended, key=lambda result: self.runs.ended[result], default="")


def failure_of(runs: RunHistory, run: Run | None) -> str:
    """The failure of the last run; empty if it didn't fail, or if somebody stopped it. `run` is as in `Inspected`."""
    last = max(runs.ended, key=lambda result: runs.ended[result], default="")
    if run and run.ended > runs.ended.get(last, 0.0):
        return f"The last run failed: {run.error}" if run.state == "failed" and not run.cancelled_by else ""
    if last in ("failed", "unpublished"):
        why = runs.last[0].errors[:1] if runs.last and runs.last[0].result == last else ()
        return ": ".join((f"The last run ended as {last}", *why))
    return ""


def unread_sites(runs: RunHistory) -> str:
    """The sites that the last published run couldn't read, with the reasons; empty if it read all."""
    if not (failed := runs.failed_sources):
        return ""
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"The last published run couldn't read a site, whose pages stay as they were: {failed[0]}{more}"


def overdue(runs: RunHistory, hours: float, since: float) -> str:
    """Says that no run has succeeded for so many `hours`, or since this time if none ever has; empty if one has, or for 0."""
    last = max(runs.ended.get("published", 0.0), runs.ended.get("partial", 0.0)) or since
    silent = (time.time() - last) / 3600
    return (
        f"No run has succeeded for {silent:.0f} hours; one is expected every {hours:g}." if 0 < hours < silent else ""
    )


def problems(
    inspected: Sequence[Inspected],
    parts: Mapping[str, PartState | None],
    assistants: Assistants,
    settings: Settings,
) -> list[ProblemBody]:
    """All problems, the most severe first."""
    found = [problem for one in inspected for problem in _of_index(one, settings)]
    found += _of_parts(parts)
    filled = {one.name: {page.collection for page in one.pages} for one in inspected if one.state.info}
    for assistant, names in assistants.empty_collections(filled).items():
        message = f"The assistant {assistant} answers from {', '.join(names)}, where no page is indexed."
        found.append(
            _problem("empty_collection", "warning", None, message, "Index a site in it, or change assistants.toml.")
        )
    found.append(_of_model(assistants))
    return sorted(found, key=lambda one: ("error", "warning", "info").index(one["severity"]))


def _of_model(assistants: Assistants) -> ProblemBody:
    """What is known of the language model: that there is none, that nobody has examined it, or its exam."""
    if (model := assistants.model) is None:
        message = "No language model is set: answers quote the pages."
        return _problem("no_model", "info", None, message, "Set DOCS_LLM_URL and DOCS_LLM_MODEL.")
    if exam := assistants.exams.get(model.name):
        return _problem("exam", "info", None, f"The exam of {model.name} says: {exam.said}.", AFTER_EXAM)
    message = f"Nobody has examined {model.name}: it may invent more than it answers."
    return _problem("no_exam", "info", None, message, EXAMINE)


def _of_runs(one: Inspected, settings: Settings) -> Iterator[ProblemBody]:
    if failure := failure_of(one.runs, one.run):
        message = f"{failure.rstrip('.')}. The index is as it was before."
        yield _problem("run_failed", "warning", one.name, message, LOOK)
    if unread := unread_sites(one.runs):
        yield _problem("site_failed", "warning", one.name, unread, LOOK_AT_SITE)
    if late := overdue(one.runs, settings.tuning.run_hours, time.time()):
        yield _problem("no_run", "warning", one.name, late, "Look whether the nightly run is started, and at its log.")


def _of_index(one: Inspected, settings: Settings) -> Iterator[ProblemBody]:
    state, name = one.state, one.name
    yield from _of_runs(one, settings)
    if state.store_problem:
        yield _problem(
            "store", "error", name, state.store_problem, "Check the store; `docs-assistant check` says more."
        )
    elif state.info is None and one.first_run:
        far = "The first run has read {done} of {total} pages; about {minutes} min are left.".format_map(one.first_run)
        yield _problem("still_reading", "warning", name, far, "Wait, or look at it in Runs.")
        return
    elif state.info is None:
        yield _problem("no_index", "error", name, state.problem, RUN_AGAIN)
        return
    elif mismatch := embedder_mismatch(state.info, one.embedder):
        yield _problem("embedder", "warning", name, mismatch, "Index the sites again, or set that embedder.")
    if state.problem and state.info is not None:
        yield _problem("too_old", "error", name, state.problem, RUN_AGAIN)
    if failing := sum(1 for page in one.pages if page.fetch.stale_since):
        message = f"The last run couldn't read some pages ({failing}): their earlier text is used."
        yield _problem("pages_failing", "warning", name, message, "Look at them in Pages, then repair or remove them.")
    lacking = [code for code in settings.languages if one.pages and code not in {page.language for page in one.pages}]
    if lacking:
        message = f"No page is in {', '.join(lacking)}: such questions are answered from pages in other languages."
        to_do = "Index such pages, or remove the language from DOCS_LANGUAGES."
        yield _problem("no_pages_in_language", "info", name, message, to_do)


def _of_parts(parts: Mapping[str, PartState | None]) -> Iterator[ProblemBody]:
    to_do = "Check its server and its key. The service tries it again by itself."
    for kind, part in parts.items():
        for one in (part, *part.others) if part else ():
            if one.state == "failing":
                failure = one.last_failure or one.last_probe_failure
                message = f"{one.name} has been failing since {one.failing_since}"
                message += f": {failure.error}" if failure else ""
                yield _problem(f"{kind}_fails", "warning", None, message, to_do)


def _problem(
    code: str, severity: Literal["error", "warning", "info"], index: str | None, message: str, to_do: str
) -> ProblemBody:
    return {"code": code, "severity": severity, "index": index, "message": message, "to_do": to_do}


EVERY = 60.0  # seconds between two looks at the runs
TIMEOUT = 10.0


@dataclass
class RunAlarm:
    """Looks at the runs of all indexes. A failure is told once, if it is of after the start; a silence once per DOCS_TUNING__RUN_HOURS.

    What the web hook doesn't take is told at the next look.
    """

    assistants: Assistants
    settings: Settings
    runs: Runs
    since: float = field(default_factory=time.time)
    _told: dict[tuple[str, str], float] = field(default_factory=dict)

    async def run(self) -> None:
        """Look until cancelled; at once over without a web hook."""
        while self.settings.tuning.run_webhook.get_secret_value():
            for name, index in self.assistants.used().items():
                try:
                    history = await runs_of(index.store)
                except AssistantError as error:
                    log.warning(LogMessage("runs can't be looked at", index=name, error=error))
                    continue
                for event, when, message in self._alarms(name, history):
                    if self._told.get((name, event), 0.0) < when and await self._tell(name, event, message):
                        self._told[name, event] = when
            await asyncio.sleep(EVERY)

    def _alarms(self, name: str, history: RunHistory) -> Iterator[tuple[str, float, str]]:
        """Each alarm with a time that is later than that of an alarm that says the same."""
        run = None if name else self.runs.last
        ended = max([*history.ended.values(), run.ended if run else 0.0], default=0.0)
        if ended >= self.since and (message := failure_of(history, run)):
            yield "run_failed", ended, message
        elif ended >= self.since and (message := unread_sites(history)):
            yield "site_failed", ended, message
        if late := overdue(history, self.settings.tuning.run_hours, self.since):
            period = self.settings.tuning.run_hours * 3600
            yield "no_run", time.time() // period * period, late

    async def _tell(self, name: str, event: str, message: str) -> bool:
        text = f"Docs Assistant{f', index {name}' if name else ''}: {message}"
        body = {"event": event, "index": name, "message": message, "text": for_chats(text)}
        hook = self.settings.tuning.run_webhook.get_secret_value()
        status, failure = await called(hook, body)
        problem = failure or ("" if 200 <= status < 300 else f"status {status}")
        if problem:
            log.warning(LogMessage("the web hook of runs doesn't answer", event=event, error=problem))
        return not problem


async def called(hook: str, body: Mapping[str, Any]) -> tuple[int, str]:
    """The status with which a web hook answers this JSON; 0 and the name of the failure if it doesn't. The body of its answer isn't read."""
    import httpx

    try:
        async with httpx.AsyncClient(timeout=TIMEOUT) as client, client.stream("POST", hook, json=body) as response:
            return response.status_code, ""
    except httpx.HTTPError as error:
        return 0, type(error).__name__  # its text has the address, which may be a secret


_SIGNS = str.maketrans("<>[]`*@&", "‹›()'∗＠＆")  # noqa: RUF001  # they are what it is about


def for_chats(text: str) -> str:
    """The text on one line for Slack, Mattermost and others, of at most `LONGEST` characters: signs by which what a site says could
    call people, hide an address behind other words or look like ours become such that look alike and do nothing.
    """
    return cut(" ".join(text.translate(_SIGNS).split()))


MOST = 100
LONGEST = 1000  # characters of a message
_NUMBER = re.compile(r"\d+")


class RecentProblems(logging.Handler):
    """Keeps the last `MOST` different warnings and errors."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: OrderedDict[tuple[str, str, str], RecentProblem] = OrderedDict()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Context in which the messages of all loggers are kept."""
        logging.getLogger().addHandler(self)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(self)

    def all(self) -> tuple[RecentProblem, ...]:
        """The kept ones, the latest first."""
        self.acquire()
        try:
            return tuple(reversed(self._kept.values()))
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep this record."""
        try:
            self._keep(_recent_problem(record))
        except Exception:  # noqa: BLE001  # as every handler: a broken message must not break what logs it
            self.handleError(record)

    def _keep(self, problem: RecentProblem) -> None:
        key = problem.level, problem.logger, _NUMBER.sub("0", problem.message + problem.exception)
        if known := self._kept.pop(key, None):
            problem.count, problem.first_at = known.count + 1, known.first_at
        self._kept[key] = problem
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)


def _recent_problem(record: logging.LogRecord) -> RecentProblem:
    said, id_ = record.msg, REQUEST_ID.get()
    if isinstance(said, LogMessage):
        id_ = str(said.fields.get("id", id_))
        unexpected = ("message",) if record.exc_info else ()
        text = str(LogMessage(said.text, **{k: v for k, v in said.fields.items() if k not in ("id", *unexpected)}))
    else:
        text = record.getMessage().partition("\n")[0]
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds")
    return RecentProblem(record.levelname.lower(), record.name, cut(masked(text)), _exception(record), id_, at, at)


def cut(text: str) -> str:
    """The text, or its first `LONGEST` characters."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _exception(record: logging.LogRecord) -> str:
    """Kind and place of the exception, such as `KeyError in steps/cite.py:12, links`."""
    kind, _, trace = record.exc_info or (None, None, None)
    if kind is None:
        return ""
    frames = traceback.extract_tb(trace)
    if not frames:
        return kind.__name__
    last = frames[-1]
    return f"{kind.__name__} in {'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}, {last.name}"
