"""Blocks that most pages of a source repeat: found on a sample of its pages, and recorded with the index.

The sample is fetched before all other pages, and each of its downloads is used for the page itself, too. What an earlier
run recorded stays until half of the sample has changed, so that the text of a page doesn't depend on other pages' changes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.generation import RepeatedBlock, SourceRecord
from app.core.log_message import masked
from app.core.settings import Settings
from app.core.types import Page
from ingestion.convert.boilerplate import FEWEST, repeated_in, sampled_page
from ingestion.convert.reader import PageLoader
from ingestion.crawl.exchange import BUILT_TYPES, Fetched
from ingestion.entry import Entry
from ingestion.errors import ConversionError, is_of_page
from ingestion.publish.draft import Baseline
from ingestion.publish.page_reader import PageReader
from ingestion.sources import Source, settings_of

SAMPLE = 48
"""Pages of a source that are compared: a block of most pages is on half of them even if it is missing on every third."""


@dataclass(frozen=True, slots=True)
class Found:
    """Blocks that most pages of a source repeat, and the number of pages compared."""

    blocks: tuple[RepeatedBlock, ...] = ()
    compared: int = 0


async def find_blocks(entries: Sequence[Entry], reader: PageReader, baseline: Baseline) -> Mapping[Source, Found]:
    """Finds the blocks that the pages of each source repeat. Sources with too few pages to tell aren't there.

    Pages that needn't be requested, because of their lastmod, haven't changed.
    """
    by_source: dict[Source, list[Entry]] = defaultdict(list)
    for entry in entries:
        if not entry.file or entry.url.lower().endswith(tuple(BUILT_TYPES)):
            by_source[entry.site].append(entry)
    states = {(page.collection, page.fetch.fetched_url): page for page in baseline.states.values()}
    known = {
        site: _recorded(baseline.sources, site.url, site.collection or reader.settings.tuning.collection)
        for site in by_source
    }
    held = frozenset(entry.url for entry in reader.divided(with_blocks(entries, known))[1])
    finders = [
        _Finder(known[site], _sample(its), held, reader.documents, states, not baseline.rebuilds)
        for site, its in by_source.items()
        if len(its) >= FEWEST
    ]
    results = await asyncio.gather(*(finder.find() for finder in finders))
    return {finder.site: result for finder, result in zip(finders, results, strict=True)}


def with_blocks(entries: Iterable[Entry], found: Mapping[Source, Found]) -> list[Entry]:
    """The entries with what their sources' pages repeat."""
    return [replace(entry, repeated=found[entry.site].blocks) if entry.site in found else entry for entry in entries]


def recorded_with(
    records: Iterable[SourceRecord], found: Mapping[Source, Found], before: Sequence[SourceRecord], settings: Settings
) -> list[SourceRecord]:
    """The records of this run's sources with what was found, or else with what was recorded `before`."""
    known = {(site.url, site.collection or settings.tuning.collection): of_site for site, of_site in found.items()}
    return [
        replace(record, repeated=of_site.blocks, compared=of_site.compared)
        for record in records
        for of_site in (known.get((record.url, record.collection)) or _recorded(before, record.url, record.collection),)
    ]


def _recorded(before: Iterable[SourceRecord], url: str, collection: str) -> Found:
    record = next((record for record in before if (record.url, record.collection) == (url, collection)), None)
    return Found(record.repeated, record.compared) if record else Found()


def _sample(entries: Iterable[Entry]) -> list[Entry]:
    """The same pages in each run, whatever their order, as long as they are listed."""
    return sorted(entries, key=lambda entry: hashlib.sha256(entry.url.encode()).digest())[:SAMPLE]


@dataclass(frozen=True, slots=True)
class _Finder:
    known: Found
    sample: Sequence[Entry]
    held: Collection[str]
    documents: PageLoader
    states: Mapping[tuple[str, str], Page]
    conditional: bool

    @property
    def site(self) -> Source:
        return self.sample[0].site

    async def find(self) -> Found:
        """What is known, unless most pages of the sample changed, or the site has grown since."""
        conditional = self.conditional and 2 * self.known.compared >= len(self.sample)
        asked = [entry for entry in self.sample if not (conditional and entry.url in self.held)]
        answers = await asyncio.gather(*(self._answer(entry, conditional=conditional) for entry in asked))
        read = [
            (entry, answer) for entry, answer in zip(asked, answers, strict=True) if answer and answer.status != 304
        ]
        same = len(self.sample) - len(asked) + sum(answer is not None and answer.status == 304 for answer in answers)
        if len(read) < max(FEWEST, same):
            return self.known
        pages = await asyncio.gather(*(self._page(entry, fetched) for entry, fetched in read))
        try:
            blocks = await self.documents.workers.run(repeated_in, list(filter(None, pages)))
        except ConversionError as error:  # pages made to be too much for a process
            self.documents.notes[f"{masked(self.site.url)}: blocks that repeat can't be found ({error})"] += len(read)
            return self.known
        return Found(blocks, len(read))

    async def _answer(self, entry: Entry, *, conditional: bool) -> Fetched | None:
        page = self.states.get((self.site.collection or self.documents.settings.tuning.collection, entry.url))
        validators = ("", "")
        if conditional and page and settings_of(page.fetch.reading) == self.site.reading:
            validators = page.fetch.etag, page.fetch.last_modified
        try:
            return await self.documents.fetch_early(entry, *validators)
        except Exception as error:
            if not is_of_page(error):
                raise
            return None  # reading the page will meet it again

    async def _page(self, entry: Entry, fetched: Fetched) -> bytes:
        try:
            with self.documents.workers.page(entry.url):
                return await self.documents.workers.run(
                    sampled_page, fetched, entry.without_text(), self.documents.words
                )
        except Exception as error:
            if not is_of_page(error):
                raise
            return b""
