"""One listed address -> what the index should hold of it: fetch, convert, compare with what is known."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from app.core.errors import AssistantError, CrawlError
from app.core.language import Vocabulary, vocabulary
from app.core.settings import Settings
from app.core.types import Page
from ingestion.convert import ConversionError, Document, MadeByScript
from ingestion.convert.addresses import Addresses, own_address
from ingestion.convert.anchors import Anchors
from ingestion.convert.language import not_configured
from ingestion.convert.links import public_url
from ingestion.convert.own_markdown import OwnMarkdown
from ingestion.convert.prepare import Prepared, dated_as, document, prepared_and_cut
from ingestion.convert.workers import Workers
from ingestion.crawl.directory import read_file
from ingestion.crawl.exchange import ACCEPT_HTML, Wanted
from ingestion.crawl.fetch import Fetched, Fetcher, PageError, PageGone, PageSkipped, origin
from ingestion.crawl.render import Renderer, open_renderer
from ingestion.crawl.sitemap import Entry
from ingestion.publish.change import Change
from ingestion.publish.embed import Embedding
from ingestion.report import Outcome, PageReport
from ingestion.sources import Source
from ingestion.split import open_splitter
from ingestion.split.chunking import Chunking
from ingestion.split.summaries import Summariser, open_summariser
from ingestion.split.translate import Translator, open_translator

STALE = dt.timedelta(days=14)
"""How long an unreadable page stays in the index."""


@dataclass
class Reader:
    """Reads addresses against what is known; use it as `async with`.

    `states` holds the pages of the index by public address. With `fresh` every page is read anew and put, because
    nothing of the index can be used again; a `dry` one asks no language model. `notes` counts, by text, what the operator should know.
    """

    fetcher: Fetcher
    workers: Workers
    settings: Settings
    embedding: Embedding
    states: Mapping[str, Page]
    listed: frozenset[str]
    fresh: bool = False
    dry: bool = False
    notes: Counter[str] = field(default_factory=Counter)
    _by_fetched: dict[tuple[str, str], Page] = field(init=False)
    _addresses: Addresses = field(init=False)
    _within: dict[Source, Settings] = field(default_factory=dict)
    _again: set[str] = field(default_factory=set)
    _chunking: Chunking = field(init=False)
    _words: Vocabulary = field(init=False)
    _anchors: dict[str, Anchors] = field(default_factory=dict)
    _translator: Translator | None = field(init=False)
    _summariser: Summariser | None = field(init=False)
    _renderer: Renderer | None = field(init=False)

    def __post_init__(self) -> None:
        self._by_fetched = {(page.collection, page.fetched_url): page for page in self.states.values()}
        self._addresses = Addresses(self.listed, self.states)
        self._words = vocabulary(self.settings.languages, self.settings.prompts)
        self._own = OwnMarkdown(self.fetcher, self.workers, self._words)
        self._translator = open_translator(self.settings, dry=self.dry)
        self._summariser = open_summariser(self.settings, self.states.values(), dry=self.dry)
        self._chunking = Chunking(
            open_splitter(self.settings), self.embedding, self.workers, self._translator, self._summariser
        )
        self._renderer = open_renderer(self.settings, self.fetcher)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renderer is not None:
            await self._renderer.close()
        if self._translator is not None:
            await self._translator.close()
        if self._summariser is not None:
            await self._summariser.close()

    async def read(self, entry: Entry) -> Change:
        """What the address means for the index; never raises for what is wrong with the page."""
        began = time.monotonic()
        known = self._known(entry)
        try:
            change = await self._read(entry, known)
        except PageGone as error:
            change = self._left(entry, known, str(error))
        except (PageSkipped, ConversionError) as error:
            change = self._kept(entry, known, "skipped", str(error))
        except PageError as error:
            change = self._kept(entry, known, "failed", str(error), error.status)
        except Exception as error:
            if isinstance(error, AssistantError) and not isinstance(error, CrawlError):
                raise  # of the store, of a model or of the settings: no other page would do better
            change = self._kept(entry, known, "failed", f"can't be read ({type(error).__name__}: {error})")
        assert change.report is not None
        seconds = round(time.monotonic() - began, 3)
        return replace(change, entry=entry, report=replace(change.report, seconds=seconds))

    def again(self, entries: Iterable[Entry]) -> None:
        """Read these as a whole, whatever is known of them."""
        self._again.update(entry.url for entry in entries)

    def disputed(self) -> list[tuple[Entry, str]]:
        """Pages to read again under their own address, and the one that they were read under."""
        return self._addresses.disputed()

    def _known(self, entry: Entry) -> Page | None:
        collection = self._settings(entry).collection
        known = self._by_fetched.get((collection, entry.url)) or self.states.get(own_address(entry))
        return known if known is not None and known.collection == collection else None

    def _settings(self, entry: Entry) -> Settings:
        if entry.site not in self._within:
            self._within[entry.site] = entry.site.within(self.settings)
        return self._within[entry.site]

    async def _read(self, entry: Entry, known: Page | None) -> Change:
        fetched = await self._fetch(entry, known)
        if fetched is None:
            assert known is not None
            return self._unchanged(entry, known)
        settings = self._settings(entry)
        if reason := self._addresses.claimed(entry, fetched, settings.collection):
            return self._left(entry, known, reason)
        read, fetched = await self._document(fetched, entry)
        if read.note:
            self.notes[f"{entry.site.url}: {read.note}"] += 1
        if read.raw:
            read = await self._anchors_of(entry).anchored(read, origin(fetched.url), _public(entry, fetched))
        addressed = self._addresses.addressed(entry, fetched, read)
        known_hash = known.hash if known is not None else ""
        made = await self.workers.run(
            prepared_and_cut, read, replace(addressed, body=b""), entry, settings, self._chunking.splitter, known_hash
        )
        made = replace(made, page=replace(made.page, reading=entry.site.reading))
        return await self._compared(made, fetched, entry, known)

    async def _document(self, fetched: Fetched, entry: Entry) -> tuple[Document, Fetched]:
        """The document, and the download that it was made of: a browser's, where JavaScript makes the page."""
        try:
            return await self._own.document(fetched, entry), fetched
        except MadeByScript as error:
            if entry.file:
                raise
            if self._renderer is None:
                raise MadeByScript(f"{error}; DOCS_RENDER=auto with docs-assistant[browser] can read it") from error
        html = await self._renderer.html(fetched.url)
        # validators of the empty shell say nothing of what fills it
        made = replace(fetched, body=html.encode(), media_type="text/html", charset="utf-8", etag="", last_modified="")
        return await self._own.document(made, entry), made

    def _anchors_of(self, entry: Entry) -> Anchors:
        way = self.settings.anchors if entry.site.anchors == "auto" else entry.site.anchors
        return self._anchors.setdefault(way, Anchors(way, self._html, self.workers))

    async def _fetch(self, entry: Entry, known: Page | None) -> Fetched | None:
        """The page, or None where it is as known."""
        if (
            known is not None
            and entry.url not in self._again
            and self._is_whole(known)
            and known.fetched_url == entry.url
            and known.reading == entry.site.reading
        ):
            fetched = await self._get(entry, known.etag, known.last_modified)
            if fetched.status != 304:
                return fetched
            if self._addresses.holds(entry, fetched, known):
                return None
            # it moved since: validators of one address say nothing of another
        fetched = await self._get(entry)
        if fetched.status == 304:
            raise PageError("answered 304 though nothing was known of it", 304)
        return fetched

    async def _get(self, entry: Entry, etag: str = "", last_modified: str = "") -> Fetched:
        if entry.file:
            return await asyncio.to_thread(read_file, entry, etag, self.settings.crawl_max_bytes)
        return await self._own.fetch(entry, etag, last_modified)

    async def _html(self, url: str) -> Document | None:
        """The HTML form of a page whose Markdown was read; None where it has none."""
        try:
            fetched = await self.fetcher.get(Wanted(url, accept=ACCEPT_HTML))
            made = await self.workers.run(document, fetched, self._words)
        except (PageError, ConversionError):
            return None
        return None if made.raw else made

    async def finished(self, made: Prepared) -> Prepared:
        """The page with all its chunks, as these settings make them. Raises `ModelError` when the embedder fails."""
        return await self._chunking.finished(made)

    @property
    def summary_calls(self) -> int:
        """How often the language model was asked for a summary."""
        return self._summariser.calls if self._summariser is not None else 0

    def _is_whole(self, known: Page) -> bool:
        """True when nothing would be made of the page that the index hasn't, as long as the page is the same.

        A page that leads to another one with its text has no chunks, so no translations and no use for a summary.
        """
        return not self.fresh and (bool(known.same_as) or self._chunking.has_all(known, known))

    async def _compared(self, made: Prepared, fetched: Fetched, entry: Entry, known: Page | None) -> Change:
        page = made.page
        same = known is not None and known.url == page.url and known.hash == page.hash
        if known is not None and same:
            page = dated_as(page, known)
        outcome: Outcome = "new" if known is None else "unchanged" if same else "changed"
        report = PageReport(page.url, outcome, language=page.language, note=made.note, redirects=fetched.redirects)
        shown = known is not None and _shown(known) == _shown(page)
        usable = known if known is not None and same and shown and not (self.fresh or known.same_as) else None
        if usable is not None and self._chunking.has_all(usable, page):
            kept = _with_made(page, usable)
            return Change(replace(report, chunks=len(usable.chunk_ids)), touch=kept, page=kept)
        made = await self.finished(replace(made, page=page))
        report = replace(report, note=made.note, chunks=len(made.chunks), translated=made.translated)
        if usable is not None and not self._gained(usable, made.page):
            kept = _with_made(page, usable)
            return Change(report, touch=kept, page=kept)
        moved = known is not None and known.url != page.url
        return Change(report, put=made, remove=self._leaving(entry, known) if moved else "", page=made.page)

    def _gained(self, known: Page, made: Page) -> bool:
        """True when making the unchanged page once more brought something. When the model is away it brings nothing,
        and what the model made before is better than that.
        """
        if known.translations and not self._chunking.has_translations(made, made):
            return False
        return (made.translations, made.summary_of) != (known.translations, known.summary_of)

    def _left(self, entry: Entry, known: Page | None, reason: str) -> Change:
        """A page that is no longer at its address: what is indexed of it goes."""
        leaving = self._leaving(entry, known)
        return Change(PageReport(leaving or entry.url, "removed" if leaving else "skipped", reason), remove=leaving)

    def _leaving(self, entry: Entry, known: Page | None) -> str:
        """The address to remove with a page, unless another entry stands for it now."""
        if known is None or (known.url in self.listed and known.url != own_address(entry)):
            return ""
        return known.url

    def _unchanged(self, entry: Entry, known: Page) -> Change:
        now = replace(known, status=200, stale_since="", source=entry.source)
        report = PageReport(
            known.url,
            "unchanged",
            language=known.language,
            note=not_configured(known.language, self._settings(entry).languages),
            chunks=len(known.chunk_ids),
        )
        return Change(report, touch=now if now != known else None, page=now)

    def _kept(self, entry: Entry, known: Page | None, outcome: Outcome, reason: str, status: int = 0) -> Change:
        """A page that can't be read: what is indexed of it stays, marked as stale from the first time on."""
        reason = reason.removeprefix(f"{entry.url} ")
        if known is None:
            return Change(PageReport(entry.url, outcome, reason))
        now = dt.datetime.now(dt.UTC)
        since = known.stale_since or now.isoformat(timespec="seconds")
        if now - dt.datetime.fromisoformat(since) > STALE:
            return self._left(entry, known, f"{reason}, ever since {since[:10]}")
        touched = replace(known, stale_since=since, status=status, source=entry.source)
        return Change(
            PageReport(
                known.url,
                outcome,
                reason,
                language=known.language,
                kept=True,
                stale_since=since,
                chunks=len(known.chunk_ids),
            ),
            touch=touched if touched != known else None,
            page=touched,
        )


def _public(entry: Entry, fetched: Fetched) -> str:
    return public_url(fetched.url if fetched.redirects else entry.url)


def _with_made(page: Page, known: Page) -> Page:
    """The page with what the language model made of its known state."""
    return replace(page, translations=known.translations, summary=known.summary, summary_of=known.summary_of)


def _shown(page: Page) -> tuple[str, str, tuple[str, ...]]:
    return page.title, page.language, page.versions
