"""Listed pages -> the draft: reading side by side, merging of equal texts, writing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from app.index.protocols import Draft
from ingestion.convert.workers import processes
from ingestion.crawl.fetch import host
from ingestion.crawl.sitemap import Entry
from ingestion.publish.change import Change
from ingestion.publish.duplicates import Twins
from ingestion.publish.write import Writer
from ingestion.read import Reader
from ingestion.report import Report

READAHEAD = 32
"""Read pages that may wait for the writer: keeps memory flat when embedding is slower than fetching."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A run over entries; when all are read, those are read again whose place turned out wrong."""

    reader: Reader
    writer: Writer
    twins: Twins

    async def run(self, entries: Sequence[Entry]) -> None:
        """Read and write all entries side by side."""
        queue: asyncio.Queue[Change | None] = asyncio.Queue(READAHEAD)
        waiting = iter(entries)
        hosts = len({host(entry.url) for entry in entries})

        async def read() -> None:
            for entry in waiting:
                await queue.put(await self.reader.read(entry))

        async def write() -> None:
            while (change := await queue.get()) is not None:
                for merged in self.twins.merged(change):
                    await self.writer.write(merged)
            await self.writer.flush()

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(write())
                # more than may fetch: the others are converted meanwhile, or wait for it
                count = self.reader.settings.crawl_parallel * hosts + 2 * processes()
                await asyncio.gather(*(group.create_task(read()) for _ in range(count)))
                await queue.put(None)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def read_again(self, draft: Draft, report: Report) -> None:
        """Read the pages whose place in the index turned out wrong when all others were known."""
        disputed = self.reader.disputed()
        for _, url in disputed:
            await draft.remove(url)
            self.twins.forget(url)
        again = [*disputed, *self.twins.orphans()]
        if again:
            urls = {url for _, url in again}
            report.pages[:] = [page for page in report.pages if page.url not in urls]
            entries = [entry for entry, _ in again]
            self.reader.again(entries)
            await self.run(entries)
