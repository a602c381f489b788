"""The change of the index for one page, and pages that repeat the text of another one."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.core.types import Page
from ingestion.convert.prepare import Prepared, same_text
from ingestion.crawl.lastmods import settled
from ingestion.entry import Entry
from ingestion.report import PageReport
from ingestion.urls import stem

STALE = dt.timedelta(days=14)
"""The time for which an unreadable page stays in the index."""


@dataclass(frozen=True, slots=True)
class PageChange:
    """Change for one entry: a page to `put` with its chunks or to `touch` without, and an address to `remove`.

    `page` is the state that the index will have for the listed `entry`, where it is certain. A change without `report`
    follows from another entry's. `login_form` is True if the page has one.
    """

    report: PageReport | None
    put: Prepared | None = None
    touch: Page | None = None
    remove: str = ""
    page: Page | None = None
    entry: Entry | None = None
    login_form: bool = False


def unchanged(entry: Entry, known: Page) -> PageChange:
    """The page is as the index has it."""
    fetch = replace(
        known.fetch, status=200, stale_since="", source=entry.source, links=entry.links, lastmod=settled(entry.lastmod)
    )
    page = replace(known, fetch=fetch)
    report = PageReport(known.url, "unchanged", language=known.language, chunks=len(known.derived.chunk_ids))
    return PageChange(report, touch=page if page != known else None, page=page)


def same_text_as(known: Page, page: Page, report: PageReport) -> PageChange:
    """The page was read and has the text of its known state. Its record is written if anything but the time differs."""
    fetch = replace(page.fetch, fetched_at=known.fetch.fetched_at, last_ok=known.fetch.last_ok)
    page = replace(page, markdown="", fetch=fetch, derived=known.derived)
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
    since = known.fetch.stale_since or dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    fetch = replace(known.fetch, stale_since=since, status=status, source=entry.source, last_ok=last_ok)
    page = replace(known, fetch=fetch)
    report = replace(report, url=known.url, language=known.language, kept=True, stale_since=since)
    report = replace(report, chunks=len(known.derived.chunk_ids))
    return PageChange(report, touch=page if page != known else None, page=page)


def stale_too_long(known: Page) -> bool:
    """True when the page could not be read for longer than `STALE`."""
    if not known.fetch.stale_since:
        return False
    return dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(known.fetch.stale_since) > STALE


LEAST_WORDS = 20
"""Shorter pages are stubs, whose equal texts mean nothing."""

_Key = tuple[str, str, str, tuple[str, ...]]


def _key(page: Page) -> _Key:
    return page.collection, page.language, same_text(page.hash), page.versions


@dataclass(frozen=True, slots=True)
class _Original:
    """The page that is searched for a text; `settled` when it was already so before the run."""

    page: Page
    settled: bool = False


@dataclass
class Duplicates:
    """Decides, page by page, which of those with the same text is the original.

    The original in the index stays the original. Otherwise it is the page that others name as canonical, then the
    one listed first. So the result does not depend on the order in which pages arrive.
    """

    rank: Mapping[str, int]
    _originals: dict[_Key, _Original] = field(default_factory=dict)
    _keys: dict[str, _Key] = field(default_factory=dict)
    _copies: dict[str, tuple[Page, Entry | None]] = field(default_factory=dict)
    _replaced_by: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Sequence[Entry], states: Iterable[Page]) -> Duplicates:
        """With the pages of the index; earlier `entries` are preferred."""
        duplicates = cls({entry.url: number for number, entry in enumerate(entries)})
        for page in sorted(states, key=lambda page: page.url):
            if not page.derived.same_as and _key(page) not in duplicates._originals:
                duplicates._hold(page, settled=True)
        return duplicates

    def merged(self, change: PageChange) -> list[PageChange]:
        """The changes to write for this one: it or another page may become a copy."""
        if change.remove:
            self.forget(change.remove)
        page = change.page
        if page is None:
            return [change]
        key = _key(page)
        if self._keys.get(page.url, key) != key:
            self.forget(page.url)
        original = self._originals.get(key)
        if original is None or original.page.url == page.url:
            return [self._only_one(change, page)]
        if page.derived.same_as and change.put is None:
            return [self._as_copy(change, page, original.page)]
        if change.put is None or _is_stub(change.put.page, original.page):
            return [change]
        if not self._is_preferred(original, page):
            return [self._as_copy(change, page, original.page)]
        self._hold(page)
        return [change, *self._replacement(original.page, change.put.page)]

    def forget(self, url: str) -> None:
        """Forget a page that was removed or has another text now."""
        key = self._keys.pop(url, None)
        if key is not None:
            del self._originals[key]
        self._copies.pop(url, None)

    def orphans(self) -> list[tuple[Entry, str]]:
        """Copies whose original has another text now, to be read again, with their addresses."""
        orphans: list[tuple[Entry, str]] = []
        for page, entry in self._copies.values():
            original = self._originals.get(_key(page))
            if entry is not None and (original is None or original.page.url != page.derived.same_as):
                orphans.append((entry, page.url))
        return sorted(orphans, key=lambda one: self.rank.get(one[0].url, 0))

    def reported(self, report: PageReport) -> PageReport:
        """The final report of a page, also when it became a copy after its report was made."""
        original = self._replaced_by.get(report.url, report.same_as)
        while original in self._replaced_by:
            original = self._replaced_by[original]
        return _same(report, original) if original != report.same_as else report

    def _hold(self, page: Page, *, settled: bool = False) -> None:
        self._originals[_key(page)] = _Original(replace(page.copy_of(""), markdown=""), settled)
        self._keys[page.url] = _key(page)
        self._copies.pop(page.url, None)
        self._replaced_by.pop(page.url, None)

    def _only_one(self, change: PageChange, page: Page) -> PageChange:
        """No other page has the text. A former copy is read again at the end."""
        if page.derived.same_as:
            self._copies[page.url] = (page, change.entry)
        elif page.url not in self._keys:
            self._hold(page)
        return change

    def _is_preferred(self, original: _Original, page: Page) -> bool:
        other = original.page
        if original.settled:
            return False
        if (other.canonical == page.url) != (page.canonical == other.url):
            return other.canonical == page.url
        last = len(self.rank)
        return self.rank.get(page.fetch.fetched_url, last) < self.rank.get(other.fetch.fetched_url, last)

    def _as_copy(self, change: PageChange, page: Page, original: Page) -> PageChange:
        """The change of a page that has no chunks, because the original has its text."""
        copy = page.copy_of(original.url)
        self._copies[page.url] = (replace(copy, markdown=""), change.entry)
        report = _same(change.report, original.url) if change.report else None
        if change.put is None:
            return replace(change, report=report, touch=copy if copy != page else change.touch)
        put = replace(copy, markdown=change.put.page.markdown)
        return replace(change, report=report, put=Prepared(put, ()), touch=None)

    def _replacement(self, original: Page, page: Page) -> Iterator[PageChange]:
        """The changes that make the former original and its copies copies of the page."""
        self._replaced_by[original.url] = page.url
        self._keys.pop(original.url, None)
        key = _key(original)
        led = [
            (page, entry)
            for page, entry in self._copies.values()
            if page.derived.same_as == original.url and _key(page) == key
        ]
        for former, entry in [(original, None), *led]:
            copy = former.copy_of(page.url)
            self._copies[former.url] = (copy, entry)
            yield PageChange(None, put=Prepared(replace(copy, markdown=page.markdown), ()))


def _same(report: PageReport, original: str) -> PageReport:
    return replace(
        report, outcome="skipped", reason=f"has the same text as {original}", same_as=original, chunks=0, translated=()
    )


def _is_stub(page: Page, original: Page) -> bool:
    """True for a page whose text says too little, unless its address is only another form of the original's."""
    return len(re.findall(r"\w+", page.markdown)) < LEAST_WORDS and stem(page.url) != stem(original.url)
