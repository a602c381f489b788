"""Listed pages -> the draft: read several at once, merge equal texts, write."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from app.core import spans
from app.core.types import Page
from app.index.protocols import Draft
from ingestion.convert.prepare import Prepared
from ingestion.entry import Entry
from ingestion.errors import is_of_page
from ingestion.page_reader import PageReader
from ingestion.publish.baseline import Baseline
from ingestion.publish.change import PageChange
from ingestion.publish.duplicates import Duplicates
from ingestion.publish.write import Writer
from ingestion.report import PageReport, Report
from ingestion.urls import host
from ingestion.workers import processes

READAHEAD = 32
"""Pages that wait for the writer at most. It bounds memory when embedding is slower than fetching."""


@dataclass(frozen=True, slots=True)
class PageProcessor:
    """Takes entries through reader, merging and writer. Pages whose result depends on later ones are read again."""

    reader: PageReader
    writer: Writer
    duplicates: Duplicates

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
                for merged in self.duplicates.merged(change):
                    await self.writer.write(merged)
            await self.writer.flush()

        # more than can fetch at once, because some convert meanwhile
        count = self.reader.settings.crawl_parallel * hosts + 2 * processes()
        try:
            with spans.span("pages"):
                async with asyncio.TaskGroup() as group:
                    group.create_task(write())
                    await asyncio.gather(*(group.create_task(read()) for _ in range(count)))
                    await queue.put(None)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors

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
            kept = PageReport(url, "skipped", reason, put.page.language, kept=True, chunks=len(put.chunks))
            await self.writer.write(PageChange(kept if reason and url not in told else None, put=put))
        await self.writer.flush()

    async def _finished(self, page: Page, baseline: Baseline) -> tuple[Prepared | None, str]:
        """The page with its chunks; if it can't be cut, with those of the live generation, if any, and the reason."""
        if page.same_as:
            return Prepared(page), ""
        try:
            return await self.reader.chunker.finished(Prepared(page)), ""
        except Exception as error:
            if not is_of_page(error):
                raise
            return await baseline.cut(page), str(error)
