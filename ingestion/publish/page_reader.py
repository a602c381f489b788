"""One listed page -> its change of the index: fetch, convert, split, and compare with what the index has.

Pages that weren't translated, maybe with a note about that above the text, repeat another listed page: where the text is in
another language than the page declares, the page in the language of the text is looked for, and their blocks are compared.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import urljoin

from app.core import spans
from app.core.language import Vocabulary, vocabulary, with_words
from app.core.settings import Settings
from app.core.types import Page
from app.index.protocols import Draft
from app.index.run_history import LeftOut, RunHistory
from ingestion.convert.prepare import Addresses, Prepared, same_text, text_hash, without_targets
from ingestion.convert.reader import PageLoader
from ingestion.crawl.exchange import Fetched
from ingestion.crawl.language_tags import counterparts, language_by_counterpart, primary_language
from ingestion.crawl.lastmods import Lastmods, settled
from ingestion.entry import Entry
from ingestion.errors import ConversionError, PageError, PageGone, PageLeftOut, PageSkipped, is_of_page
from ingestion.publish.change import (
    Duplicates,
    PageChange,
    in_other_language,
    kept,
    removed,
    removed_address,
    same_text_as,
    stale_too_long,
    unchanged,
)
from ingestion.publish.draft import Baseline, Writer
from ingestion.publish.turned import NOWHERE, Turned
from ingestion.report import Outcome, PageReport, Report
from ingestion.sources import Source
from ingestion.split.chunker import Chunker
from ingestion.urls import host, public_url
from ingestion.workers import processes

_MOST = 0.8
"""The least share of the original's blocks that a page must have to be the same one."""

_OWN = 0.5
"""The largest share of a page's blocks that the original lacks, such as a note and translated labels."""

MOST_LEFT_OUT = 5_000
"""Pages of a source in other languages of which runs keep what tells that they haven't changed: it takes about 1 MB."""


class _Text(NamedTuple):
    same: str
    blocks: frozenset[str]


@dataclass
class Originals:
    """The pages of a run that others may repeat; `listed` has its entries by public address."""

    documents: PageLoader
    listed: Mapping[str, Entry]
    words: Vocabulary
    _texts: dict[str, _Text | None] = field(default_factory=dict)
    _wanted: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        addresses = (other for url in self.listed for other in counterparts(url, self.words.codes, self.words))
        self._wanted = frozenset(other for other in addresses if other in self.listed)

    async def merged(self, made: Prepared) -> Prepared:
        """The page as one with the text of its original, if it repeats one in another language than it declares."""
        page = made.page
        if not made.note:
            if page.url in self._wanted or page.alternates:
                self._texts[page.url] = _text(page.markdown, page.hash)
            return made
        own = _text(page.markdown, page.hash)
        for url in self._candidates(page):
            original = await self._text_of(url)
            if original is not None and _repeats(own.blocks, original.blocks):
                same = replace(page, hash=original.same + page.hash[len(original.same) :], canonical=url)
                return replace(made, page=same, note="")
        return made

    def _candidates(self, page: Page) -> Iterable[str]:
        tagged = page.alternates.items()
        alternates = [url for tag, url in tagged if primary_language(tag, self.words) == page.language]
        addresses = [*alternates, *counterparts(page.url, (page.language,), self.words)]
        return dict.fromkeys(url for url in addresses if url in self.listed and url != page.url)

    async def _text_of(self, url: str) -> _Text | None:
        """The text of a listed page, which may have to be read before its turn; None if it can't be."""
        if url not in self._texts:
            self._texts[url] = await self._read(self.listed[url])
        return self._texts[url]

    async def _read(self, entry: Entry) -> _Text | None:
        try:
            with self.documents.workers.page(entry.url):
                document, fetched = await self.documents.read(entry, await self.documents.fetch_early(entry))
        except Exception as error:
            if not is_of_page(error):
                raise
            return None  # its own turn says what is wrong with it
        if fetched.redirects and public_url(fetched.url) != entry.address:
            return None
        return _text(document.markdown, text_hash(document.markdown))


def _text(markdown: str, hashed: str) -> _Text:
    blocks = (" ".join(block.split()) for block in without_targets(markdown).split("\n\n"))
    return _Text(same_text(hashed), frozenset(filter(None, blocks)))


def _repeats(own: frozenset[str], original: frozenset[str]) -> bool:
    shared = len(own & original)
    return shared >= _MOST * len(original) and shared > (1 - _OWN) * len(own)


def _is_same(before: LeftOut, fetched: Fetched) -> bool:
    """True if a page that was left out has not changed, also where it was downloaded as one of a sample."""
    same = fetched.status == 304 or (bool(before.etag) and fetched.etag == before.etag)
    return same and not fetched.redirects


@dataclass
class PageReader:
    """Reads listed pages and compares them with the index.

    `states` are the pages of the index by public address, `listed` all entries by theirs. With `fresh`,
    every page is read and written again, because nothing of the index can be reused. `runs` are those so far.
    """

    documents: PageLoader
    chunker: Chunker
    settings: Settings
    states: Mapping[str, Page]
    listed: Mapping[str, Entry]
    fresh: bool = False
    runs: RunHistory = field(default_factory=RunHistory)
    lastmods: Lastmods = field(init=False)
    _by_fetched: dict[tuple[str, str], Page] = field(init=False)
    _addresses: Addresses = field(init=False)
    _originals: Originals = field(init=False)
    _site_settings: dict[Source, Settings] = field(default_factory=dict)
    _again: set[str] = field(default_factory=set)
    _left_out: dict[str, dict[str, LeftOut]] = field(default_factory=lambda: defaultdict(dict))
    _left_out_before: dict[str, LeftOut] = field(init=False)

    def __post_init__(self) -> None:
        self._by_fetched = {(page.collection, page.fetch.fetched_url): page for page in self.states.values()}
        self._addresses = Addresses(frozenset(self.listed), self.states)
        self._originals = Originals(self.documents, self.listed, self.documents.words)
        self.lastmods = Lastmods(self.runs.sources)
        before = () if self.fresh else (page for runs in self.runs.sources.values() for page in runs.left_out)
        self._left_out_before = {page.url: page for page in before}

    async def read(self, entry: Entry) -> PageChange:
        """The change of the index for one entry. Problems of the page are part of the result, not errors.

        Raises errors of the store, of a model or of the settings, because they would fail every other page too.
        """
        began = time.monotonic()
        known = self._known(entry)
        try:
            with self.documents.workers.page(entry.url):
                change = await self._change(entry, known)
        except (PageGone, PageLeftOut) as error:
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
        if known is not None and self._is_comparable(entry, known):
            self.lastmods.learn(entry, known, change.report)
        seconds = round(time.monotonic() - began, 3)
        return replace(change, entry=entry, report=replace(change.report, seconds=seconds))

    def kept(self, change: PageChange, reason: str) -> PageChange:
        """The change of a page that was read, but isn't for the index for this reason: what the index has stays."""
        assert change.entry is not None
        return replace(self._unreadable(change.entry, self._known(change.entry), "failed", reason), entry=change.entry)

    async def nowhere(self, entry: Entry) -> str:
        """The Markdown that the site has for an address beside this one where no page is; empty if it says that none is there."""
        beside = replace(entry, url=urljoin(entry.url.rstrip("/"), NOWHERE), public="", alternates={}, lastmod="")
        try:
            fetched = await self.documents.fetch(beside)
            return "" if fetched.redirects else (await self.documents.read(beside, fetched))[0].markdown
        except Exception as error:
            if not is_of_page(error):
                raise
            return ""

    async def with_form(self, url: str) -> str:
        """The Markdown of a listed page if it has a field for a password; else empty, also if it can't be read."""
        if (entry := self.listed.get(url)) is None:
            return ""
        try:
            fetched = await self.documents.fetch(entry)
            return (await self.documents.read(entry, fetched))[0].markdown if fetched.login_form else ""
        except Exception as error:
            if not is_of_page(error):
                raise
            return ""

    def divided(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
        """The entries to read first, and those that needn't be requested, unless the first show that lastmod can't be believed."""
        return self.lastmods.divided(entries, self._has_same_lastmod)

    def left_out(self, source: str) -> tuple[LeftOut, ...]:
        """The pages of a source that this run has left out because of their language, at most `MOST_LEFT_OUT`."""
        return tuple(self._left_out[source].values())[:MOST_LEFT_OUT]

    def read_fully(self, entries: Iterable[Entry]) -> None:
        """From now on, read these without conditional requests."""
        self._again.update(entry.url for entry in entries)

    def disputed(self) -> list[tuple[Entry, str]]:
        """Pages to read again under their own address, each with the address that it was given first."""
        return self._addresses.disputed()

    def _has_same_lastmod(self, entry: Entry) -> bool:
        known = self._known(entry)
        return (
            known is not None
            and not entry.is_local
            and not known.fetch.stale_since
            and known.fetch.lastmod == settled(entry.lastmod)
            and self._is_current(entry, known)
            and self._addresses.holds(entry, Fetched(entry.url, 304), known)
        )

    def _known(self, entry: Entry) -> Page | None:
        collection = self._settings(entry).tuning.collection
        known = self._by_fetched.get((collection, entry.url)) or self.states.get(entry.address)
        return known if known is not None and known.collection == collection else None

    def _settings(self, entry: Entry) -> Settings:
        if entry.site not in self._site_settings:
            self._site_settings[entry.site] = entry.site.within(self.settings)
        return self._site_settings[entry.site]

    async def _change(self, entry: Entry, known: Page | None) -> PageChange:
        settings = self._settings(entry)
        before = self._known_left_out(entry) if known is None else None
        fetched = await self._fetch(entry, known, before)
        if before is not None and fetched is not None and _is_same(before, fetched):
            self._left_out[entry.source][entry.url] = before
            found = PageReport(entry.address, "new", language=before.language, note=before.note)
            return in_other_language(entry, None, self.listed, settings.languages, found)
        if fetched is None:
            assert known is not None
            report = PageReport(known.url, "unchanged", language=known.language)
            return self._in_other_language(entry, known, known, report) or unchanged(entry, known)
        if reason := self._addresses.conflict(entry, fetched, settings.tuning.collection):
            return removed(entry, known, self.listed, reason)
        document, fetched = await self.documents.read(entry, fetched)
        addressed = self._addresses.addressed(entry, fetched, document)
        known_hash = known.hash if known is not None else ""
        document = replace(document, languages={**document.languages, **self._counterpart(entry, settings)})
        prepared = await self.chunker.prepared(document, replace(addressed, body=b""), entry, settings, known_hash)
        report = PageReport(prepared.page.url, "new", language=prepared.page.language, note=prepared.note)
        if change := self._in_other_language(entry, known, prepared.page, report):
            self._remember(entry, prepared)
            return change
        prepared = await self._originals.merged(prepared)
        change = await self._compared(prepared, fetched.redirects, entry, known)
        return replace(change, login_form=fetched.login_form)

    def _counterpart(self, entry: Entry, settings: Settings) -> Mapping[str, str]:
        words = vocabulary(with_words(settings.languages, settings.prompts), settings.prompts)
        return language_by_counterpart(entry.address, self.listed, words)

    def _in_other_language(self, entry: Entry, known: Page | None, page: Page, found: PageReport) -> PageChange | None:
        """The change if the page is in a language that isn't configured, and that it isn't translated from."""
        languages = self._settings(entry).languages
        if page.language in languages or self.chunker.is_translatable(page):
            return None
        return in_other_language(entry, known, self.listed, languages, found)

    def _remember(self, entry: Entry, made: Prepared) -> None:
        """Note a page that is left out, with what a later run needs to see that it is the same."""
        fetch = made.page.fetch
        if made.page.url == entry.address and (fetch.etag or fetch.last_modified):
            validators = fetch.etag, fetch.last_modified
            page = LeftOut(entry.url, self._mark(entry), *validators, made.page.language, made.note)
            self._left_out[entry.source][entry.url] = page

    def _known_left_out(self, entry: Entry) -> LeftOut | None:
        page = self._left_out_before.get(entry.url)
        if page is None or entry.url in self._again or self.chunker.translator is not None:
            return None
        return page if page.mark == self._mark(entry) else None

    def _mark(self, entry: Entry) -> str:
        """Stands for all by which the language of a page is told, beside the page itself."""
        settings = self._settings(entry)
        told = entry.reading, settings.languages, settings.default_language, dict(self._counterpart(entry, settings))
        return blake2b(repr((*told, entry.alternates)).encode(), digest_size=8).hexdigest()

    async def _fetch(self, entry: Entry, known: Page | None, left_out: LeftOut | None) -> Fetched | None:
        """The page, or None when it has not changed. Of one that was `left_out`, the answer may be that it hasn't."""
        if left_out is not None:
            fetched = await self.documents.fetch(entry, left_out.etag, left_out.last_modified)
            if fetched.status != 304 or _is_same(left_out, fetched):
                return fetched
        if known is not None and self._is_current(entry, known):
            if self.lastmods.holds(entry):
                return None
            fetched = await self.documents.fetch(entry, known.fetch.etag, known.fetch.last_modified)
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
            self._is_comparable(entry, known)
            and known.fetch.fetched_url == entry.url
            and (bool(known.derived.same_as) or self.chunker.is_complete(known, known))
        )

    def _is_comparable(self, entry: Entry, known: Page) -> bool:
        return not self.fresh and entry.url not in self._again and known.fetch.reading == entry.reading

    async def _compared(
        self, prepared: Prepared, redirects: tuple[str, ...], entry: Entry, known: Page | None
    ) -> PageChange:
        translation_set = known.derived.translation_set if known is not None else ""
        derived = replace(prepared.page.derived, translation_set=translation_set)
        page = replace(prepared.page, derived=derived)
        same = known is not None and known.url == page.url and known.hash == page.hash
        if known is not None and same:
            page = replace(page, published=known.published, modified=known.modified)  # a deployment is no change
        outcome: Outcome = "new" if known is None else "unchanged" if same else "changed"
        report = PageReport(page.url, outcome, language=page.language, note=prepared.note, redirects=redirects)
        reusable = known if same and self._is_reusable(known, page) else None
        if reusable is not None and (reusable.derived.same_as or self.chunker.is_complete(reusable, page)):
            return same_text_as(reusable, page, replace(report, chunks=len(reusable.derived.chunk_ids)))
        done = await self.chunker.finished(replace(prepared, page=page))
        report = replace(report, note=done.note, chunks=len(done.chunks), translated=done.translated)
        if reusable is not None and not self.chunker.improves(done.page, reusable):
            return same_text_as(reusable, page, report)
        moved = known is not None and known.url != page.url
        remove = removed_address(entry, known, self.listed) if moved else ""
        return PageChange(report, put=done, remove=remove, page=done.page)

    def _is_reusable(self, known: Page | None, page: Page) -> bool:
        """True when what the index has of the known page is also right for this one, which has the same text."""
        if known is None or self.fresh or (known.derived.same_as and page.fetch.fetched_url in self._again):
            return False
        return (known.title, known.language, known.versions) == (page.title, page.language, page.versions)

    def _unreadable(
        self, entry: Entry, known: Page | None, outcome: Outcome, reason: str, status: int = 0
    ) -> PageChange:
        reason = reason.removeprefix(f"{entry.url} ")
        if known is not None and stale_too_long(known):
            return removed(entry, known, self.listed, f"{reason}, ever since {known.fetch.stale_since[:10]}")
        last_ok = self.runs.last_ok(known) if known is not None else ""
        return kept(entry, known, PageReport(entry.url, outcome, reason), status, last_ok)


READAHEAD = 32
"""Pages that wait for the writer at most. It bounds memory when embedding is slower than fetching."""


@dataclass(frozen=True, slots=True)
class PageProcessor:
    """Takes entries through reader, merging and writer. Pages whose result depends on later ones are read again."""

    reader: PageReader
    writer: Writer
    duplicates: Duplicates
    turned: Turned

    async def run(self, entries: Sequence[Entry]) -> None:
        """Read and write all entries, several at once."""
        queue: asyncio.Queue[PageChange | None] = asyncio.Queue(READAHEAD)
        waiting = iter(entries)
        hosts = len({host(entry.url) for entry in entries if not entry.is_local})

        async def read() -> None:
            for entry in waiting:
                await queue.put(await self.reader.read(entry))

        async def write() -> None:
            while (change := await queue.get()) is not None:
                async for sifted in self.turned.sifted(change):
                    await self._write(sifted)
            async for held in self.turned.rest():
                await self._write(held)
            await self.writer.flush()

        # more than can fetch at once, because some convert meanwhile
        count = self.reader.settings.tuning.crawl_parallel * hosts + 2 * processes()
        try:
            with spans.span("pages"):
                async with asyncio.TaskGroup() as group:
                    group.create_task(write())
                    await asyncio.gather(*(group.create_task(read()) for _ in range(count)))
                    await queue.put(None)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def _write(self, change: PageChange) -> None:
        if reason := self.turned.reasons.get(change.put.page.url if change.put else ""):
            change = self.reader.kept(change, reason)
        for merged in self.duplicates.merged(change):
            await self.writer.write(merged)

    async def remove(self, draft: Draft, url: str) -> None:
        """Remove a page from the index; another one may then have its text."""
        await draft.remove(url)
        self.duplicates.forget(url)

    async def read_again(self, draft: Draft, report: Report) -> None:
        """Read pages again whose address or duplicate turned out wrong once all others were known."""
        disputed = self.reader.disputed()
        for _, url in disputed:
            await self.remove(draft, url)
        again = [*disputed, *self.duplicates.orphans()]
        if again:
            urls = {url for _, url in again}
            report.pages[:] = [page for page in report.pages if page.url not in urls]
            entries = [entry for entry, _ in again]
            self.reader.read_fully(entries)
            await self.run(entries)

    async def carry_over(self, baseline: Baseline, report: Report) -> None:
        """Into a rebuilt index, write the pages that this run did not read, from the Markdown of the live generation.

        A page that can't be cut keeps the chunks that it had there.
        """
        if baseline.live is None or not baseline.rebuilds:
            return
        done = {page.url for page in report.pages if page.outcome == "removed" or page.read}
        told = {page.url for page in report.pages}
        for url in baseline.states.keys() - done:
            page = await baseline.page(url)
            put, reason = await self._finished(page, baseline) if page is not None else (None, "")
            if put is None:
                report.pages.append(
                    PageReport(url, "removed", reason or "its text can't be read from the damaged index")
                )
                continue
            page_report = PageReport(url, "skipped", reason, put.page.language, kept=True, chunks=len(put.chunks))
            await self.writer.write(PageChange(page_report if reason and url not in told else None, put=put))
        await self.writer.flush()

    async def _finished(self, page: Page, baseline: Baseline) -> tuple[Prepared | None, str]:
        """The page with its chunks; if it can't be cut, with those of the live generation, if any, and the reason."""
        if page.derived.same_as:
            return Prepared(page), ""
        try:
            return await self.reader.chunker.finished(Prepared(page)), ""
        except Exception as error:
            if not is_of_page(error):
                raise
            return await baseline.cut(page), str(error)
