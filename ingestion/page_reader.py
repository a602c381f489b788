"""One listed page -> its change of the index: fetch, convert, split, and compare with what the index has."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from app.core.settings import Settings
from app.core.types import Page
from ingestion.convert.addresses import Addresses
from ingestion.convert.prepare import Prepared, dated_as
from ingestion.convert.reader import DocumentReader
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.errors import ConversionError, PageError, PageGone, PageSkipped, is_of_page
from ingestion.publish.change import PageChange, kept, removed, removed_address, stale_too_long, unchanged
from ingestion.report import Outcome, PageReport
from ingestion.sources import Source
from ingestion.split.chunker import Chunker


@dataclass
class PageReader:
    """Reads listed pages and compares them with the index; use it as `async with`.

    `states` are the pages of the index by public address, `listed` the public addresses of all entries. With `fresh`,
    every page is read and written again, because nothing of the index can be reused.
    """

    documents: DocumentReader
    chunker: Chunker
    settings: Settings
    states: Mapping[str, Page]
    listed: frozenset[str]
    fresh: bool = False
    _by_fetched: dict[tuple[str, str], Page] = field(init=False)
    _addresses: Addresses = field(init=False)
    _site_settings: dict[Source, Settings] = field(default_factory=dict)
    _again: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._by_fetched = {(page.collection, page.fetched_url): page for page in self.states.values()}
        self._addresses = Addresses(self.listed, self.states)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.documents.close()
        await self.chunker.close()

    async def read(self, entry: Entry) -> PageChange:
        """The change of the index for one entry. Problems of the page are part of the result, not errors.

        Raises errors of the store, of a model or of the settings, because they would fail every other page too.
        """
        began = time.monotonic()
        known = self._known(entry)
        try:
            change = await self._change(entry, known)
        except PageGone as error:
            change = removed(entry, known, self.listed, str(error))
        except (PageSkipped, ConversionError) as error:
            change = self._unreadable(entry, known, "skipped", str(error))
        except PageError as error:
            change = self._unreadable(entry, known, "failed", str(error), error.status)
        except Exception as error:
            if not is_of_page(error):
                raise
            change = self._unreadable(entry, known, "failed", f"can't be read ({type(error).__name__}: {error})")
        assert change.report is not None
        seconds = round(time.monotonic() - began, 3)
        return replace(change, entry=entry, report=replace(change.report, seconds=seconds))

    def read_fully(self, entries: Iterable[Entry]) -> None:
        """From now on, read these without conditional requests."""
        self._again.update(entry.url for entry in entries)

    def disputed(self) -> list[tuple[Entry, str]]:
        """Pages to read again under their own address, each with the address that it was given first."""
        return self._addresses.disputed()

    def _known(self, entry: Entry) -> Page | None:
        collection = self._settings(entry).collection
        known = self._by_fetched.get((collection, entry.url)) or self.states.get(entry.address)
        return known if known is not None and known.collection == collection else None

    def _settings(self, entry: Entry) -> Settings:
        if entry.site not in self._site_settings:
            self._site_settings[entry.site] = entry.site.within(self.settings)
        return self._site_settings[entry.site]

    async def _change(self, entry: Entry, known: Page | None) -> PageChange:
        settings = self._settings(entry)
        fetched = await self._fetch(entry, known)
        if fetched is None:
            assert known is not None
            return unchanged(entry, known, settings.languages)
        if reason := self._addresses.conflict(entry, fetched, settings.collection):
            return removed(entry, known, self.listed, reason)
        document, fetched = await self.documents.read(entry, fetched)
        addressed = self._addresses.addressed(entry, fetched, document)
        known_hash = known.hash if known is not None else ""
        prepared = await self.chunker.prepared(document, replace(addressed, body=b""), entry, settings, known_hash)
        return await self._compared(prepared, fetched.redirects, entry, known)

    async def _fetch(self, entry: Entry, known: Page | None) -> Fetched | None:
        """The page, or None when it has not changed."""
        if known is not None and self._is_current(entry, known):
            fetched = await self.documents.fetch(entry, known.etag, known.last_modified)
            if fetched.status != 304:
                return fetched
            if self._addresses.holds(entry, fetched, known):
                return None
            # the page has moved, and validators of one address are invalid for another
        fetched = await self.documents.fetch(entry)
        if fetched.status == 304:
            raise PageError("answered 304 to a request without conditions", 304)
        return fetched

    def _is_current(self, entry: Entry, known: Page) -> bool:
        """True when an unchanged page needs no work at all, so that a conditional request is enough.

        A page with the text of another one has no chunks, and so needs no translations, summary or questions.
        """
        return (
            not self.fresh
            and entry.url not in self._again
            and known.fetched_url == entry.url
            and known.reading == entry.site.reading
            and (bool(known.same_as) or self.chunker.is_complete(known, known))
        )

    async def _compared(
        self, prepared: Prepared, redirects: tuple[str, ...], entry: Entry, known: Page | None
    ) -> PageChange:
        page = replace(prepared.page, translation_set=known.translation_set if known is not None else "")
        same = known is not None and known.url == page.url and known.hash == page.hash
        if known is not None and same:
            page = dated_as(page, known)
        outcome: Outcome = "new" if known is None else "unchanged" if same else "changed"
        report = PageReport(page.url, outcome, language=page.language, note=prepared.note, redirects=redirects)
        reusable = known if same and self._is_reusable(known, page) else None
        if reusable is not None and self.chunker.is_complete(reusable, page):
            touched = _with_additions(page, reusable)
            return PageChange(replace(report, chunks=len(reusable.chunk_ids)), touch=touched, page=touched)
        done = await self.chunker.finished(replace(prepared, page=page))
        report = replace(report, note=done.note, chunks=len(done.chunks), translated=done.translated)
        if reusable is not None and not self.chunker.improves(done.page, reusable):
            touched = _with_additions(page, reusable)
            return PageChange(report, touch=touched, page=touched)
        moved = known is not None and known.url != page.url
        remove = removed_address(entry, known, self.listed) if moved else ""
        return PageChange(report, put=done, remove=remove, page=done.page)

    def _is_reusable(self, known: Page | None, page: Page) -> bool:
        """True when the chunks of the known page are also right for this one, which has the same text."""
        if known is None or self.fresh or known.same_as:
            return False
        return (known.title, known.language, known.versions) == (page.title, page.language, page.versions)

    def _unreadable(
        self, entry: Entry, known: Page | None, outcome: Outcome, reason: str, status: int = 0
    ) -> PageChange:
        reason = reason.removeprefix(f"{entry.url} ")
        if known is not None and stale_too_long(known):
            return removed(entry, known, self.listed, f"{reason}, ever since {known.stale_since[:10]}")
        return kept(entry, known, PageReport(entry.url, outcome, reason), status)


def _with_additions(page: Page, known: Page) -> Page:
    """The page with what a language model wrote of its known state."""
    return replace(
        page,
        translations=known.translations,
        summary=known.summary,
        summary_of=known.summary_of,
        questions_of=known.questions_of,
    )
