"""Makes the report from the database and the index that settings name. It blocks; `in_process` has a process for it."""

import asyncio
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TypeVar

from app.conversations import log_figures as figures
from app.conversations.database import Database
from app.conversations.question_log import Asked, iso, nothing_logged, opened_log
from app.core.errors import AssistantError, DatabaseError
from app.core.language import Language, load_language, with_words
from app.core.process import end_with_parent
from app.core.settings import Settings
from app.index import directory_of, open_store
from app.text.analysis import WORD, fold, stem
from app.text.language import what_is_asked
from app.text.synonyms import Synonyms, known_synonyms, said_in, stems_of
from plugins.gaps.page_facts import MOST, Pages
from plugins.gaps.question_clusters import EXAMPLES, Failed, clusters_of, tokens_of, without_chit_chat
from plugins.gaps.records import GapReport, OutcomeRow, Reworded, SynonymProposal, Totals

T = TypeVar("T")

MOST_CLUSTERED = 2_000
"""Different questions of the period that are compared, and of the time before; the matrices of more need too much memory."""
SHOWN = 50
"""Clusters in a report."""
NICE = 10
NEARLY = 0.1
"""Share of the time before that the log may lack, and still be compared with."""


def gap_report(settings: Settings, asked: Asked, index: str = "") -> GapReport:
    """The report; pages are those of this `[[index]]`. Raises `RequestError` if nothing was logged in the period, and a `DatabaseError` if the database fails."""
    pages, problem = Pages(), ""
    with opened_log(settings, directory_of(settings)) as log:
        from app.assistants.file import index_settings

        totals, log_from, failed_different = _totals(log, asked)
        if not totals.questions:
            raise nothing_logged(settings, asked, log_from)
        known = totals.failed_before is not None
        failed = _failed(log, asked, before=known)
        languages = _languages(settings)
        try:
            tokens = {token for question in failed for token in tokens_of(question.row, languages)}
            pages = asyncio.run(_pages(index_settings(settings, index) if index else settings, tokens))
        except AssistantError as error:
            problem = str(error)
        about = without_chit_chat(failed, pages, languages)
        clusters = clusters_of(about, pages, languages, before=known)
        elsewhere = log.read(figures.elsewhere, asked)
        again = log.read(figures.asked_again, asked, MOST_CLUSTERED)
        answers = sum(one.count for one in totals.outcomes if one.outcome in figures.ANSWERED)
        enough = answers >= len(
            pages.by_url
        )  # of answers from three pages each, chance alone would leave out 5 % of the pages
        unused = pages.unused(log.read(figures.used_addresses, asked)) if enough else []
    return GapReport(
        since=iso(asked.since),
        until=iso(asked.until),
        assistant=asked.assistant,
        retention_days=settings.retention_days,
        log=settings.question_log,
        log_from=iso(log_from),
        weak_times=asked.weak,
        totals=totals,
        clusters=clusters[:SHOWN],
        synonyms=proposals(again, languages, known_synonyms(settings.prompts))[:SHOWN],
        smaller=max(len(clusters) - SHOWN, 0),
        clustered=sum(question.counts.failed > 0 for question in failed),
        failed_different=failed_different,
        chit_chat=sum(question.counts.failed for question in failed)
        - sum(question.counts.failed for question in about),
        untranslated=pages.untranslated(elsewhere),
        unused=unused[:MOST],
        unused_count=len(unused) if enough else None,
        answers=answers,
        pages=len(pages.by_url),
        index_problem=problem,
    )


def _totals(log: Database, asked: Asked) -> tuple[Totals, float, int]:
    """The totals, when the first question of the log was asked, and how many different questions failed."""
    rows = log.read(figures.outcome_counts, asked)
    count, failed, log_from = log.read(figures.count_before, asked)
    different, failed_different = log.read(figures.different, asked)
    known = 0 < log_from <= asked.before + NEARLY * (asked.until - asked.since)
    outcomes = sorted(rows, key=lambda one: (-one.count, one.outcome, one.language))
    totals = Totals(
        questions=sum(row.count for row in rows),
        different=different,
        failed=sum(row.failed for row in rows),
        refused=sum(row.refused for row in rows),
        unsupported=sum(row.unsupported for row in rows),
        weak=sum(row.weak for row in rows),
        down=sum(row.down for row in rows),
        questions_before=count if known else None,
        failed_before=failed if known else None,
        outcomes=[OutcomeRow(row.outcome, row.language, row.count, row.failed) for row in outcomes],
    )
    return totals, log_from, failed_different


def _failed(log: Database, asked: Asked, *, before: bool) -> list[Failed]:
    counts = list(log.read(figures.failures, asked, MOST_CLUSTERED))
    if before:
        counts += log.read(figures.failures, asked, MOST_CLUSTERED, before=True)
    rows = log.read(figures.rows_of, [count.newest for count in counts])
    said = log.read(figures.comments, asked, "digest", [count.digest for count in counts])
    return [
        Failed(count, row, said.get(count.digest, ()) if row.text else ())
        for count in counts
        if (row := rows.get(count.newest))  # one may be deleted meanwhile
    ]


async def _pages(settings: Settings, tokens: Collection[str]) -> Pages:
    store = open_store(settings)
    try:
        return await Pages.of(await store.live(), tokens)
    finally:
        await store.close()


def _languages(settings: Settings) -> dict[str, Any]:
    """The configured languages."""
    return {code: load_language(code, settings.prompts) for code in with_words(settings.languages, settings.prompts)}


def proposals(
    pairs: Iterable[tuple[str, str, str, str, str]], language_of: Mapping[str, Language], known: Synonyms
) -> list[SynonymProposal]:
    """Proposals of synonyms: words of the first questions and those in their place in the second ones, the most frequent first, without those that are `known`.

    A pair has the language, the texts and the ids of two questions, as `asked_again` gives it.
    """
    found = defaultdict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[str, str, bool, Reworded]]](list)
    for code, before, after, *ids in pairs:
        language = language_of.get(code)
        if language and (made := _replaced(before, after, language)):
            phrase, other, shared = made
            key = stems_of(phrase, code), stems_of(other, code)
            found[key].append((phrase, other, shared, Reworded(before, after, *ids)))
    # two questions without a common word may be about two subjects, which readers don't repeat
    made_of = [_proposal(rows) for rows in found.values() if rows[0][2] or len(rows) > 1]
    new = [one for one in made_of if not _is_known(one, known, language_of)]
    return sorted(new, key=lambda one: (-one.count, one.phrase, one.other))


def _replaced(before: str, after: str, language: Language) -> tuple[str, str, bool] | None:
    """The words of one question that the other one hasn't, each in a row, and whether they share others; None if it has another form."""
    asked, again = (WORD.findall(what_is_asked(text, language)) for text in (before, after))
    stems = [[stem(fold(word), language.code) for word in words] for words in (asked, again)]
    own, others = _row(asked, stems[0], stems[1]), _row(again, stems[1], stems[0])
    if not own or not others:
        return None
    return " ".join(own).casefold(), " ".join(others), len(own) < len(asked) and len(others) < len(again)


def _row(words: Sequence[str], stems: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """The words whose stems the others haven't, if they stand in a row and are at most one more than those that both have; else none."""
    at = [i for i, own in enumerate(stems) if own not in others]
    in_row = bool(at) and at[-1] - at[0] == len(at) - 1
    return words[at[0] : at[-1] + 1] if in_row and len(at) <= len(words) - len(at) + 1 else ()


def _proposal(rows: Sequence[tuple[str, str, bool, Reworded]]) -> SynonymProposal:
    phrase, other, *_ = rows[0]
    return SynonymProposal(phrase, other, len(rows), [row[3] for row in rows[:EXAMPLES]])


def _is_known(one: SynonymProposal, known: Synonyms, language_of: Mapping[str, Language]) -> bool:
    return any(
        fold(one.other) in map(fold, others) for code in language_of for _, others in said_in(one.phrase, code, known)
    )


def own_process() -> ProcessPoolExecutor:
    """A process of low priority that ends with this one."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin)


def _begin() -> None:
    os.nice(NICE)
    end_with_parent()


async def in_process(make: Callable[..., T], *given: object) -> T:
    """What this makes of what it is given, in a process of low priority, so that answers aren't slowed down."""
    pool = own_process()
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, partial(make, *given))
    except BrokenProcessPool as error:
        raise DatabaseError("The process that makes the report ended too early: see the log of the service.") from error
    finally:
        pool.shutdown(wait=False)
