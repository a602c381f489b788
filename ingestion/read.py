"""One listed address -> what the index should hold of it: fetch, convert, compare with what is known."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self, TypeVar

from app.core.settings import Settings
from app.core.types import Page
from ingestion.anchors import Anchors
from ingestion.chunking import Chunking
from ingestion.convert import ConversionError, Document, MadeByScript
from ingestion.convert.links import public_url
from ingestion.embed import Embedding
from ingestion.fetch import ACCEPT_HTML, Fetched, Fetcher, PageError, PageGone, PageSkipped, Wanted, origin
from ingestion.language import not_configured
from ingestion.prepare import Prepared, dated_as, document, prepare
from ingestion.raw import prefer_raw
from ingestion.render import Renderer, open_renderer
from ingestion.report import Outcome, PageReport
from ingestion.sitemap import Entry
from ingestion.split import open_splitter
from ingestion.translate import Translator, open_translator

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Change:
    """What one address means for the index: pages to put or touch, and an address to remove. `report` tells people."""

    report: PageReport | None
    put: Prepared | None = None
    touch: Page | None = None
    remove: str = ""


@dataclass
class Reader:
    """Reads addresses against what is known; use it as `async with`.

    `known` holds the collection's pages by public address, `taken` those of other collections. With `fresh` every
    page is read anew and put, because nothing of the index can be used again.
    """

    fetcher: Fetcher
    settings: Settings
    embedding: Embedding
    known: Mapping[str, Page]
    taken: Mapping[str, Page]
    listed: frozenset[str]
    fresh: bool = False
    _by_fetched: dict[str, Page] = field(init=False)
    _moved: dict[str, str] = field(default_factory=dict)
    _thread: ThreadPoolExecutor = field(init=False)
    _chunking: Chunking = field(init=False)
    _anchors: Anchors = field(init=False)
    _translator: Translator | None = field(init=False)
    _renderer: Renderer | None = field(init=False)

    def __post_init__(self) -> None:
        self._by_fetched = {page.fetched_url: page for page in self.known.values()}
        # one thread: conversion keeps pace with polite fetching, and a service beside it keeps a core
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="convert")
        self._translator = open_translator(self.settings)
        self._chunking = Chunking(open_splitter(self.settings), self.embedding, self._thread, self._translator)
        self._renderer = open_renderer(self.settings, self.fetcher)
        self._anchors = Anchors(self.settings.anchors, self._html)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._renderer is not None:
            await self._renderer.close()
        if self._translator is not None:
            await self._translator.close()

    async def read(self, entry: Entry) -> Change:
        """What the address means for the index; never raises for what is wrong with the page."""
        began = time.monotonic()
        known = self._by_fetched.get(entry.url) or self.known.get(public_url(entry.url))
        try:
            change = await self._read(entry, known)
        except PageGone as error:
            change = self._left(entry, known, str(error))
        except (PageSkipped, ConversionError) as error:
            change = self._kept(entry, known, "skipped", str(error))
        except PageError as error:
            change = self._kept(entry, known, "failed", str(error), error.status)
        assert change.report is not None
        return replace(change, report=replace(change.report, seconds=round(time.monotonic() - began, 3)))

    async def _read(self, entry: Entry, known: Page | None) -> Change:
        fetched = await self._fetch(entry, known)
        if fetched is None:
            assert known is not None
            return self._unchanged(entry, known)
        if reason := self._claimed(entry, fetched):
            return self._left(entry, known, reason)
        read, fetched = await self._document(fetched)
        if read.markdown_url:
            read = await self._with_raw(read)
        if read.raw:
            read = await self._anchors.anchored(read, origin(fetched.url), _public(entry, fetched))
        made = await self._off_loop(lambda: prepare(read, fetched, entry, self.settings))
        return await self._compared(made, fetched, entry, known)

    async def _document(self, fetched: Fetched) -> tuple[Document, Fetched]:
        """The document, and the download that it was made of: a browser's, where JavaScript makes the page."""
        try:
            return await self._off_loop(lambda: document(fetched)), fetched
        except MadeByScript as error:
            if self._renderer is None:
                raise MadeByScript(f"{error}; DOCS_RENDER=auto with docs-assistant[browser] can read it") from error
        html = await self._renderer.html(fetched.url)
        # validators of the empty shell say nothing of what fills it
        made = replace(fetched, body=html.encode(), media_type="text/html", charset="utf-8", etag="", last_modified="")
        return await self._off_loop(lambda: document(made)), made

    async def _fetch(self, entry: Entry, known: Page | None) -> Fetched | None:
        """The page, or None where it is as known."""
        if known is not None and self._is_whole(known) and known.fetched_url == entry.url:
            wanted = Wanted(entry.url, etag=known.etag, last_modified=known.last_modified)
            fetched = await self.fetcher.get(wanted)
            if fetched.status != 304:
                return fetched
            if _public(entry, fetched) == known.url:
                return None
            # it moved since: validators of one address say nothing of another
        fetched = await self.fetcher.get(Wanted(entry.url))
        if fetched.status == 304:
            raise PageError("answered 304 though nothing was known of it", 304)
        return fetched

    def _claimed(self, entry: Entry, fetched: Fetched) -> str:
        """Why a page that moved, or whose address is another collection's, isn't indexed under it."""
        url = _public(entry, fetched)
        if fetched.redirects:
            if url != public_url(entry.url) and url in self.listed:
                return f"redirects to {url}, which is listed too"
            if self._moved.setdefault(url, entry.url) != entry.url:
                return f"redirects to {url}, as {self._moved[url]} does"
        if url in self.taken:
            return f"is in the index already, in the collection {self.taken[url].collection}"
        return ""

    async def _with_raw(self, read: Document) -> Document:
        """The page's own Markdown where it names some and that is as rich as its HTML."""
        try:
            raw = await self.fetcher.get(Wanted(read.markdown_url))
            return prefer_raw(read, await self._off_loop(lambda: document(raw)))
        except (PageError, ConversionError):  # the HTML is there
            return read

    async def _html(self, url: str) -> Document | None:
        """The HTML form of a page whose Markdown was read; None where it has none."""
        try:
            fetched = await self.fetcher.get(Wanted(url, accept=ACCEPT_HTML))
            made = await self._off_loop(lambda: document(fetched))
        except (PageError, ConversionError):
            return None
        return None if made.raw else made

    async def finished(self, made: Prepared) -> Prepared:
        """The page with all its chunks, as these settings make them. Raises `ModelError` when the embedder fails."""
        return await self._chunking.finished(made)

    def _is_whole(self, known: Page) -> bool:
        """True when nothing would be made of the page that the index hasn't, as long as the page is the same."""
        return not self.fresh and self._chunking.has_translations(known, known)

    async def _compared(self, made: Prepared, fetched: Fetched, entry: Entry, known: Page | None) -> Change:
        page = made.page
        same = known is not None and known.url == page.url and known.hash == page.hash
        if known is not None and same:
            page = dated_as(page, known)
        outcome: Outcome = "new" if known is None else "unchanged" if same else "changed"
        report = PageReport(page.url, outcome, language=page.language, note=made.note, redirects=fetched.redirects)
        usable = known if same and not self.fresh and known is not None and _shown(known) == _shown(page) else None
        if usable is not None and self._chunking.has_translations(usable, page):
            kept = replace(page, translations=usable.translations)
            return Change(replace(report, chunks=len(usable.chunk_ids)), touch=kept)
        made = await self.finished(replace(made, page=page))
        report = replace(report, note=made.note, chunks=len(made.chunks), translated=made.translated)
        if usable is not None and usable.translations and not self._chunking.has_translations(made.page, page):
            # the model is away: what it translated before is better than nothing
            return Change(report, touch=replace(page, translations=usable.translations))
        moved = known is not None and known.url != page.url
        return Change(report, put=made, remove=self._leaving(entry, known) if moved else "")

    def _left(self, entry: Entry, known: Page | None, reason: str) -> Change:
        """A page that is no longer at its address: what is indexed of it goes."""
        leaving = self._leaving(entry, known)
        return Change(PageReport(leaving or entry.url, "removed" if leaving else "skipped", reason), remove=leaving)

    def _leaving(self, entry: Entry, known: Page | None) -> str:
        """The address to remove with a page, unless another entry stands for it now."""
        if known is None or (known.url in self.listed and known.url != public_url(entry.url)):
            return ""
        return known.url

    def _unchanged(self, entry: Entry, known: Page) -> Change:
        now = replace(known, status=200, stale_since="", source=entry.source)
        report = PageReport(
            known.url,
            "unchanged",
            language=known.language,
            note=not_configured(known.language, self.settings.languages),
            chunks=len(known.chunk_ids),
        )
        return Change(report, touch=now if now != known else None)

    def _kept(self, entry: Entry, known: Page | None, outcome: Outcome, reason: str, status: int = 0) -> Change:
        """A page that can't be read: what is indexed of it stays, marked as stale from the first time on."""
        reason = reason.removeprefix(f"{entry.url} ")
        if known is None:
            return Change(PageReport(entry.url, outcome, reason))
        since = known.stale_since or dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        touched = replace(known, stale_since=since, status=status, source=entry.source)
        return Change(
            PageReport(known.url, outcome, reason, language=known.language, kept=True, chunks=len(known.chunk_ids)),
            touch=touched if touched != known else None,
        )

    async def _off_loop(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _public(entry: Entry, fetched: Fetched) -> str:
    return public_url(fetched.url if fetched.redirects else entry.url)


def _shown(page: Page) -> tuple[str, str]:
    return page.title, page.language
