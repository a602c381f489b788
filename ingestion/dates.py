"""When a page was published and last changed: what the site says of it, the most trustworthy word first."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime

from ingestion.convert import Document
from ingestion.fetch import Fetched
from ingestion.sitemap import Entry

EARLIEST = dt.datetime(1993, 1, 1, tzinfo=dt.UTC)
"""No page is older than the web; what is, is a zero in some program."""

CLOCKS = dt.timedelta(days=1)
"""How far ahead a date may lie: clocks and time zones of sites differ from ours."""

BUILD = dt.timedelta(days=1)
FEWEST = 3


def page_dates(entry: Entry, read: Document, fetched: Fetched) -> tuple[str, str]:
    """(published, modified), each empty where nobody says; trusted are sitemap, front matter or meta tags, Last-Modified."""
    modified = (entry.lastmod, read.modified, fetched.last_modified)
    return iso_date(read.published), next((date for date in map(iso_date, modified) if date), "")


def iso_date(value: str) -> str:
    """An ISO or HTTP date as ISO 8601, a day or a time in UTC; empty for what is no date, in the future, or before the web."""
    text = value.strip()
    moment = _moment(text)
    if moment is None or not EARLIEST <= moment <= dt.datetime.now(dt.UTC) + CLOCKS:
        return ""
    return moment.date().isoformat() if len(text) == 10 else moment.isoformat(timespec="seconds")


def without_build_dates(entries: Sequence[Entry]) -> list[Entry]:
    """The entries, without dates where a sitemap says the same day of all its pages: that is when the site was built."""
    dates: dict[str, list[dt.datetime | None]] = defaultdict(list)
    for entry in entries:
        dates[entry.source].append(_moment(entry.lastmod.strip()))
    built = {source for source, found in dates.items() if _is_build(found)}
    return [replace(entry, lastmod="") if entry.source in built else entry for entry in entries]


def _is_build(found: Iterable[dt.datetime | None]) -> bool:
    known = [moment for moment in found if moment is not None]
    return len(known) >= FEWEST and max(known) - min(known) < BUILD


def _moment(text: str) -> dt.datetime | None:
    if not text:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
    except OverflowError:  # year 1 or 9999 in another time zone
        return None
