"""The change of the index that results from reading one listed page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from app.core.types import Page
from ingestion.convert.prepare import Prepared
from ingestion.crawl.lastmods import settled
from ingestion.entry import Entry
from ingestion.report import PageReport

STALE = dt.timedelta(days=14)
"""How long an unreadable page stays in the index."""


@dataclass(frozen=True, slots=True)
class PageChange:
    """What to write for one entry: a page to `put` with its chunks or to `touch` without, and an address to `remove`.

    `page` is the state that the index will have for the listed `entry`, where it is certain. A change without `report`
    follows from another entry's.
    """

    report: PageReport | None
    put: Prepared | None = None
    touch: Page | None = None
    remove: str = ""
    page: Page | None = None
    entry: Entry | None = None


def unchanged(entry: Entry, known: Page) -> PageChange:
    """The page is as the index has it."""
    page = replace(
        known, status=200, stale_since="", source=entry.source, links=entry.links, lastmod=settled(entry.lastmod)
    )
    report = PageReport(known.url, "unchanged", language=known.language, chunks=len(known.chunk_ids))
    return PageChange(report, touch=page if page != known else None, page=page)


def same_text_as(known: Page, page: Page, report: PageReport) -> PageChange:
    """The page was read and has the text of its known state. Its record is written if anything but the time differs."""
    page = replace(
        page,
        markdown="",
        plain=known.plain,
        chunk_ids=known.chunk_ids,
        fetched_at=known.fetched_at,
        last_ok=known.last_ok,
        translations=known.translations,
        summary=known.summary,
        summary_of=known.summary_of,
        questions_of=known.questions_of,
        same_as=known.same_as,
    )
    return PageChange(report, touch=page if page != known else None, page=page)


def in_other_language(
    entry: Entry, known: Page | None, listed: Collection[str], languages: Sequence[str], found: PageReport
) -> PageChange:
    """The page, as the report has found it, is in none of the configured `languages`, and stays or is left out."""
    reason = f"its language, {found.language}, isn't one of DOCS_LANGUAGES ({' '.join(languages)})"
    change = removed(entry, known, listed, reason)
    assert change.report is not None
    report = replace(change.report, language=found.language, note=found.note, other_language=True)
    return replace(change, report=report)


def removed(entry: Entry, known: Page | None, listed: Collection[str], reason: str) -> PageChange:
    """The page is no longer at its address."""
    address = removed_address(entry, known, listed)
    report = PageReport(address or entry.url, "removed" if address else "skipped", reason)
    return PageChange(report, remove=address)


def removed_address(entry: Entry, known: Page | None, listed: Collection[str]) -> str:
    """The address that leaves the index with a page; empty when another listed entry now has it."""
    if known is None or (known.url in listed and known.url != entry.address):
        return ""
    return known.url


def kept(entry: Entry, known: Page | None, report: PageReport, status: int, last_ok: str) -> PageChange:
    """The page can't be read, as the report says. Its indexed state, last found at `last_ok`, stays and becomes stale."""
    if known is None:
        return PageChange(report)
    since = known.stale_since or dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    page = replace(known, stale_since=since, status=status, source=entry.source, last_ok=last_ok)
    report = replace(
        report, url=known.url, language=known.language, kept=True, stale_since=since, chunks=len(known.chunk_ids)
    )
    return PageChange(report, touch=page if page != known else None, page=page)


def stale_too_long(known: Page) -> bool:
    """True when the page could not be read for longer than `STALE`."""
    if not known.stale_since:
        return False
    return dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(known.stale_since) > STALE
