"""Makes the report from the database and the index that settings name. It blocks; `in_process` has a process for it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from app.core.child import end_with_parent
from app.core.errors import AssistantError, DatabaseError, RequestError
from app.core.language import load_language, with_words
from app.core.settings import Settings
from app.gaps.clusters import Failed, clusters_of
from app.gaps.pages import MOST, Pages
from app.gaps.period import Period, iso
from app.gaps.records import GapReport, OutcomeRow, Totals
from app.gaps.vectors import in_one_space
from app.index import directory_of, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.conversations.database import Database
    from app.conversations.log_figures import Asked

T = TypeVar("T")

WEAK = 1.25
"""An answer is weak if its evidence is less than so many times the needed one. Of answers below it, the right page was found
for half of the questions of `eval/sets/docs.jsonl`; above it, for four fifths."""
MOST_CLUSTERED = 2_000
"""Different questions of the period that are compared, and of the time before; the matrices of more need too much memory."""
SHOWN = 50
"""Clusters in a report."""
NICE = 10
NEARLY = 0.1
"""Share of the time before that the log may lack, and still be compared with."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be in the report: the questions to this assistant, or to all; pages are those of this `[[index]]`."""

    period: Period
    assistant: str = ""
    index: str = ""


def gap_report(settings: Settings, wanted: Wanted) -> GapReport:
    """The report. Raises `RequestError` if nothing was logged in the period, and a `DatabaseError` if the database fails."""
    pages, problem = Pages(), ""
    with opened_log(settings) as log:
        from app.conversations import log_figures as figures
        from app.conversations.log_figures import Asked

        asked = Asked(wanted.period.since, wanted.period.until, wanted.assistant, WEAK)
        totals, log_from, failed_different = _totals(log, asked)
        if not totals.questions:
            raise nothing_logged(settings, wanted.period, log_from)
        try:
            pages = asyncio.run(_pages(_of_index(settings, wanted.index)))
        except AssistantError as error:
            problem = str(error)
        known = totals.failed_before is not None
        failed = in_one_space(_failed(log, asked, before=known))
        found = clusters_of(failed, pages, _languages(settings, failed), before=known)
        elsewhere = log.read(figures.elsewhere, asked)
        unused = pages.unused(log.read(figures.used_addresses, asked))
    return GapReport(
        since=iso(asked.since),
        until=iso(asked.until),
        assistant=wanted.assistant,
        retention_days=settings.retention_days,
        log=settings.question_log,
        log_from=iso(log_from),
        weak_below=WEAK,
        totals=totals,
        clusters=found[:SHOWN],
        smaller=max(len(found) - SHOWN, 0),
        clustered=sum(one.counts.failed > 0 for one in failed),
        failed_different=failed_different,
        untranslated=pages.untranslated(elsewhere),
        unused=unused[:MOST],
        unused_count=len(unused),
        pages=len(pages.by_url),
        index_problem=problem,
    )


@dataclass(frozen=True, slots=True)
class Log:
    """The question log of an open database."""

    database: Database

    def read(self, query: Callable[..., T], *args: Any) -> T:
        """The result of a query of `log_figures`, which may take longer than those of an answer."""
        from app.conversations.log_figures import with_time

        result: T = self.database.read(with_time, query, *args)
        return result


@contextmanager
def opened_log(settings: Settings) -> Iterator[Log]:
    """Context of the question log. Raises `RequestError` if nothing is kept, and a `DatabaseError` if there is no database."""
    if not settings.retention_days:
        raise RequestError(
            "DOCS_RETENTION_DAYS is 0: no question is kept, so there is nothing to report.", code="no_log"
        )
    from app.conversations.database import Database, revision, url_of
    from app.conversations.tables import REVISION

    url = url_of(settings.database, directory_of(settings) or Path("data"))
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise RequestError(
            f"{url.database} doesn't exist: no question was asked yet, or DOCS_DATABASE names another database.",
            code="no_log",
        )
    database = Database(url)
    try:
        if database.read(revision) != REVISION:
            database.migrate()
        yield Log(database)
    finally:
        database.close()


def nothing_logged(settings: Settings, period: Period, log_from: float, kind: str = "all") -> RequestError:
    """The error for a period without questions, with the reason as far as it is known."""
    which = "question" if kind == "all" else f"question of the kind {kind!r}"
    text = f"No {which} was logged from {iso(period.since)} until {iso(period.until)}."
    if settings.question_log == "off":
        text += " DOCS_QUESTION_LOG is off: set it to text or hashed, and questions asked from then on are logged."
    elif kind != "all" or settings.question_log == "hashed":
        text += " With DOCS_QUESTION_LOG=hashed, the log has no texts." if settings.question_log == "hashed" else ""
    elif log_from:
        text += f" The log begins at {iso(log_from)}; questions are kept for {settings.retention_days} days."
    else:
        text += " The log is empty: it has what was asked since this release was installed."
    return RequestError(text, code="no_log")


def _totals(log: Log, asked: Asked) -> tuple[Totals, float, int]:
    """The totals, when the first question of the log was asked, and how many different questions failed."""
    from app.conversations import log_figures as figures

    rows = log.read(figures.outcome_counts, asked)
    count, failed, log_from = log.read(figures.count_before, asked)
    different, failed_different = log.read(figures.different, asked)
    known = 0 < log_from <= asked.before + NEARLY * (asked.until - asked.since)
    outcomes = sorted(rows, key=lambda one: (-one.count, one.outcome, one.language))
    totals = Totals(
        questions=sum(row.count for row in rows),
        different=different,
        failed=sum(row.failed for row in rows),
        refused=sum(row.count for row in rows if row.outcome == "refused"),
        weak=sum(row.weak for row in rows),
        down=sum(row.down for row in rows),
        questions_before=count if known else None,
        failed_before=failed if known else None,
        outcomes=[OutcomeRow(row.outcome, row.language, row.count, row.failed) for row in outcomes],
    )
    return totals, log_from, failed_different


def _failed(log: Log, asked: Asked, *, before: bool) -> list[Failed]:
    from app.conversations import log_figures as figures

    counts = list(log.read(figures.failures, asked, MOST_CLUSTERED))
    if before:
        counts += log.read(partial(figures.failures, before=True), asked, MOST_CLUSTERED)
    rows = log.read(figures.rows_of, [one.newest for one in counts])
    return [Failed(one, rows[one.newest]) for one in counts if one.newest in rows]  # one may be deleted meanwhile


async def _pages(settings: Settings) -> Pages:
    store = open_store(settings)
    try:
        live = await store.live()
        return Pages.of(await live.pages(), await live.translation_sets())
    finally:
        await store.close()


def _of_index(settings: Settings, name: str) -> Settings:
    from app.assistants.file import index_settings

    return index_settings(settings, name) if name else settings


def _languages(settings: Settings, failed: list[Failed]) -> dict[str, Any]:
    """The configured languages that were asked in."""
    asked_in = {one.row.language for one in failed}
    codes = with_words(settings.languages, settings.prompts)
    return {code: load_language(code, settings.prompts) for code in codes if code in asked_in}


def own_process() -> ProcessPoolExecutor:
    """A process of low priority that ends with this one."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin)


def _begin() -> None:
    os.nice(NICE)
    end_with_parent()


async def in_process(settings: Settings, wanted: Wanted) -> GapReport:
    """The report, made in a process of low priority, so that answers aren't slowed down."""
    pool = own_process()
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, gap_report, settings, wanted)
    except BrokenProcessPool as error:
        raise DatabaseError("The process that makes the report ended too early: see the log of the service.") from error
    finally:
        pool.shutdown(wait=False)
