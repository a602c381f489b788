"""The dates of publication and last change of a page, from the most reliable source that has them."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ingestion.convert import Document
from ingestion.crawl.exchange import Fetched
from ingestion.crawl.http_date import parse_date
from ingestion.entry import Entry

EARLIEST = dt.datetime(1993, 1, 1, tzinfo=dt.UTC)
"""No page is older than the web: earlier dates are zeros of some program."""

CLOCKS = dt.timedelta(days=1)
"""How far a date may be in the future, because clocks and time zones differ."""

BUILD = dt.timedelta(days=1)
FEWEST = 3


def page_dates(entry: Entry, read: Document, fetched: Fetched) -> tuple[str, str]:
    """(published, modified), each may be empty; from the sitemap, then front matter or meta tags, then Last-Modified."""
    modified = (entry.lastmod, read.modified, fetched.last_modified)
    return iso_date(read.published), next((date for date in map(iso_date, modified) if date), "")


def iso_date(value: str) -> str:
    """An ISO or HTTP date as ISO 8601, a day or a time in UTC; empty when it is invalid, in the future, or before the web."""
    text = value.strip()
    found = parse_date(text)
    if found is None or not EARLIEST <= found <= dt.datetime.now(dt.UTC) + CLOCKS:
        return ""
    return found.date().isoformat() if len(text) == 10 else found.isoformat(timespec="seconds")


def without_build_dates(entries: Sequence[Entry]) -> list[Entry]:
    """The entries, without dates where all pages of a sitemap have the same day: then it is the day of the build."""
    dates: dict[str, list[dt.datetime | None]] = defaultdict(list)
    for entry in entries:
        dates[entry.source].append(parse_date(entry.lastmod))
    built = {source for source, found in dates.items() if _is_build(found)}
    return [replace(entry, lastmod="") if entry.source in built else entry for entry in entries]


def _is_build(found: Iterable[dt.datetime | None]) -> bool:
    known = [date for date in found if date is not None]
    return len(known) >= FEWEST and max(known) - min(known) < BUILD
