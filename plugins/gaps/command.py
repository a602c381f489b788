"""`docs-assistant report` and `briefing`: what the documentation lacks, and the morning of an editor, from the questions that were logged."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict

import click

from app.conversations.question_log import PERIOD_OPTIONS, Asked
from app.core.errors import SettingsError
from app.core.prompts import SYNONYMS
from app.core.settings import Settings
from docs_assistant.cli.shared import index_option, json_option, json_text, print_error
from plugins.gaps.records import Cluster, GapReport

SHOWN = 20
EXAMPLES = 3
TO_DO = {
    "write": "write about it, or say in the documentation that it isn't possible",
    "extend": "say more in the nearest section, in the words of the questions",
    "correct": "read what readers rated down, and correct the section that it was made from",
}
PAGES = 20


@click.command(params=[*PERIOD_OPTIONS])
@click.option("--assistant", default="", metavar="ID", help="only questions to this assistant")
@index_option
@json_option
def report(since: str, until: str, assistant: str, index: str, as_json: bool) -> int:
    """Groups the questions that weren't answered well by subject, over all languages.

    Reads the question log (DOCS_QUESTION_LOG) in the database of conversations, and the index for titles and translations.
    """
    from plugins.gaps.making import gap_report

    gaps = gap_report(Settings.load(), Asked.read(since, until, time.time(), assistant), index)
    print(json_text(asdict(gaps)) if as_json else as_text(gaps))
    return 0


@click.command()
@click.option("--day", default="", metavar="DAY", help="a day in UTC, such as 2026-11-29 (default: yesterday)")
@click.option("--send", is_flag=True, help="send it to the addresses of DOCS_TUNING__BRIEFING")
@json_option
def briefing(day: str, send: bool, as_json: bool) -> int:
    """Says how the last run ended, how many questions a day had, what readers wrote, and what to write next.

    With --send, the exit code is 1 if an address didn't take it; the others have got it.
    """
    from plugins.gaps.briefing import briefing_of, yesterday
    from plugins.gaps.delivery import NotDelivered, addresses, deliver

    settings, now = Settings.load(), time.time()
    if send and not addresses(settings):
        raise SettingsError(
            "DOCS_TUNING__BRIEFING is empty: name the mail servers and web hooks that get the briefing."
        )
    made = briefing_of(settings, day or yesterday(now), now)
    if not send:
        print(json_text(made.body) if as_json else f"{made.subject}\n\n{made.text}")
        return 0
    failed = 0
    for address in addresses(settings):
        try:
            deliver(address, made)
        except NotDelivered as error:
            print_error(error)
            failed = 1
    return failed


def as_text(report: GapReport) -> str:
    """Returns the report with what is missing most first, with examples; then translations and pages."""
    return "\n".join(
        [*_totals(report), "", *_clusters(report), *_synonyms(report), *_untranslated(report), *_unused(report)]
    )


def share(part: int, whole: int) -> str:
    """Such as "12 (40 %)"."""
    return f"{part} ({100 * part / whole:.0f} %)" if whole else str(part)


def trend(now: int, before: int | None) -> str:
    """Returns the change of the number; empty if the one before isn't known."""
    if before is None:
        return ""
    return "new" if not before else "as before" if now == before else f"{now - before:+d}"


def _totals(report: GapReport) -> Iterator[str]:
    totals = report.totals
    of = f" to {report.assistant}" if report.assistant else ""
    yield f"What the documentation lacks, {report.since[:10]} to {report.until[:10]}"
    yield ""
    yield f"{totals.questions} questions{of}, {totals.different} different; not answered well: {share(totals.failed, totals.questions)}"
    yield f'  refused {totals.refused}, not supported {totals.unsupported}, weak {totals.weak} ("Perhaps", or evidence below {report.weak_times:g} times the needed), rated down {totals.down}'
    if totals.questions_before is None:
        yield f"  no trend: the log begins at {report.log_from[:10]} and keeps {report.retention_days} days"
    else:
        yield f"  the time before: {totals.questions_before} questions, {totals.failed_before} not answered well"
    for row in totals.outcomes:
        yield f"  {row.language or '?':<4} {row.outcome:<11} {row.count:>8}" + (
            f"  not answered well: {row.failed}" if row.failed else ""
        )
    if report.clustered < report.failed_different:
        yield f"  compared: the {report.clustered} most frequent of {report.failed_different} different questions"
    if report.chit_chat:
        yield f"  left out below, because they only greet, thank or say nothing: {report.chit_chat}"
    if report.index_problem:
        yield f"  nothing is known of the pages: {report.index_problem}"


def _clusters(report: GapReport) -> Iterator[str]:
    if not report.clusters:
        yield "Every question was answered well."
        return
    yield "What to write, by the number of questions that weren't answered well"
    for number, cluster in enumerate(report.clusters[:SHOWN], 1):
        yield ""
        yield from _cluster(number, cluster)
    others = len(report.clusters) - SHOWN + report.smaller
    if others > 0:
        yield f"\nand {others} smaller subjects (--json has up to {len(report.clusters)})"


def _cluster(number: int, one: Cluster) -> Iterator[str]:
    changed = trend(one.failed, one.failed_before)
    yield f"{number:>3}. {one.name or 'questions without a near section'}: {one.failed}{f' ({changed})' if changed else ''}"
    languages = ", ".join(f"{code or '?'} {count}" for code, count in one.languages.items())
    parts = [
        f"{name} {share(part, one.count)}"
        for name, part in (
            ("refused", one.refused),
            ("not supported", one.unsupported),
            ("weak", one.weak),
            ("down", one.down),
        )
        if part
    ]
    yield f"     asked {one.count}×, different wordings: {one.different} ({languages}); {', '.join(parts)}; last {one.last[:10]}"
    for example in one.examples[:EXAMPLES]:
        yield f"     - {' '.join(example.text.split())}" + (f" ({example.count} times)" if example.count > 1 else "")
    for comment in one.comments[:EXAMPLES]:
        yield f"     a reader wrote: {' '.join(comment.split())}"
    if one.nearest:
        clear = "nearest section" if one.nearest.clear else "no section is about it; the nearest"
        yield f"     {clear}: {one.nearest.section or one.nearest.title} ({one.nearest.share:.0%} of them) {one.nearest.url}"
    yield f"     to do: {TO_DO[one.to_do]}"


def _synonyms(report: GapReport) -> Iterator[str]:
    if not report.synonyms:
        return
    yield f"\nAsked again in other words, which were answered: lines for {SYNONYMS} in the directory of DOCS_PROMPTS"
    for one in report.synonyms:
        line = f"{json.dumps(one.phrase, ensure_ascii=False)} = [{json.dumps(one.other, ensure_ascii=False)}]"
        example = one.examples[0]
        yield f"  {one.count:>5}  {line}  # {' '.join(example.before.split())} -> {' '.join(example.after.split())}"


def _untranslated(report: GapReport) -> Iterator[str]:
    if not report.untranslated:
        return
    yield "\nAsked in a language that the page isn't translated into"
    for page in report.untranslated[:PAGES]:
        yield f"  {page.count:>5}  asked in {page.language}, exists only in {page.page_language}: {page.title} {page.url}"


def _unused(report: GapReport) -> Iterator[str]:
    if report.unused_count is None:
        yield f"\nWhich pages no answer uses is said from {report.pages} answers on, one for each page; there are {report.answers}"
    elif report.unused_count:
        yield f"\nUsed by no answer: {report.unused_count} of {report.pages} pages"
        for page in report.unused[:PAGES]:
            yield f"  {page.language:<4} {page.title} {page.url}"
        if report.unused_count > PAGES:
            yield f"  and {report.unused_count - PAGES} more"
