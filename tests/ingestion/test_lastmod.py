"""Nights in which little changed: pages that needn't be requested, records that needn't be written."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.core.errors import NotPublished
from app.core.generation import SourceRecord
from app.core.types import Page
from app.index.protocols import Store
from app.index.run_history import SourceRuns, as_last_read, readable_runs_of, write_runs
from ingestion.crawl.lastmods import CYCLE, LEAST, PROOFS, Lastmods
from ingestion.entry import Entry
from ingestion.report import Report
from ingestion.sources import Source
from tests.contract.conftest import OPENERS
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite, local_site

PAGES = 24
WORDS = "Some words about the thing that this page explains, how to install it, and how to use it every day at work."


class Night(Index):
    """A site of pages with dates in its sitemap, and an index of it."""

    def __init__(self, site: LocalSite, store: Store, *, validators: bool = True) -> None:
        super().__init__(store, site, crawl_parallel=16)
        self.validators = validators
        self.dates: dict[int, str] = {}
        for number in range(PAGES):
            self.dates[number] = f"2024-01-{1 + number % 28:02}T00:00:00Z"
            self.write(number, "")

    def write(self, number: int, more: str) -> None:
        """Give a page this text."""
        body = f"<h1>Page {number}</h1><p>{WORDS} It is number {number}.</p><p>{more}</p>"
        self.site.put(
            f"/p{number}", f"<html lang=en><title>Page {number}</title><main>{body}</main>", etag=self.validators
        )

    def change(self, number: int, day: int) -> None:
        """Change the text of a page and its lastmod, as an honest site does."""
        self.write(number, f"Changed on day {day}.")
        self.dates[number] = f"2024-02-{day:02}"

    async def read(self, **options: Any) -> tuple[Report, set[int]]:
        """One run, and the pages that it requested."""
        urls = "".join(
            f"<url><loc>{self.site.url}/p{n}</loc><lastmod>{d}</lastmod></url>" for n, d in self.dates.items()
        )
        self.site.put("/sitemap.xml", f"<urlset>{urls}</urlset>", "application/xml")
        self.site.log.clear()
        source = Source(url=f"{self.site.url}/sitemap.xml", **options.pop("source", {}))
        report = await self.run(source, **options)
        return report, {int(path[2:]) for path, _, _ in self.site.log if path.startswith("/p")}

    async def proved(self) -> None:
        """Index the site, and let it prove that it changes lastmod with the text."""
        await self.read()
        for number in range(PROOFS):
            self.change(number, 1)
        _, requested = await self.read()
        assert len(requested) == PAGES

    async def pages_as_last_read(self) -> dict[str, Page]:
        """The pages as operators see them."""
        found = await as_last_read(self.store, await (await self.store.live()).pages())
        return {page.url.rpartition("/")[2]: page for page in found}

    async def read_days_ago(self, days: int) -> None:
        """As if the last run had been then."""
        runs = await readable_runs_of(self.store)
        then = {root: replace(one, read=time.time() - days * 24 * 3600) for root, one in runs.sources.items()}
        await write_runs(self.store, replace(runs, sources=then))


@pytest.fixture
async def night(site: LocalSite, tmp_path: Path) -> AsyncIterator[Night]:
    """A site and an empty index of the embedded store."""
    async with OPENERS["embedded"](tmp_path) as opener:
        yield Night(site, await opener())


async def test_a_site_that_proved_its_lastmod_is_asked_for_changed_pages_and_a_sample(night: Night) -> None:
    """New, changed and failing pages are requested, each page again within a cycle, and all after a change of settings."""
    await night.proved()
    night.change(20, 2)
    night.dates[PAGES] = "2024-01-05"
    night.write(PAGES, "")
    report, requested = await night.read()
    assert {20, PAGES} <= requested
    assert len(requested) == 2 + LEAST
    assert (report.counts["changed"], report.counts["new"], report.counts["unchanged"]) == (1, 1, PAGES - 1)
    note = (
        f"{PAGES - 1 - LEAST} pages were not requested, because their lastmod is unchanged; {LEAST} others were checked"
    )
    assert note in report.text
    assert (await night.read(dry_run=True))[1] < set(night.dates)
    for options in ({"source": {"drop_selectors": [".x"]}}, {"rebuild": True}):
        assert (await night.read(dry_run=True, **options))[1] == set(night.dates)
    await night.read_days_ago(CYCLE)
    assert (await night.read())[1] == set(night.dates)


async def test_one_lie_ends_the_trust_in_the_same_run(night: Night) -> None:
    """A page of the sample with a new text and the old lastmod: all pages are read in this run and in the next ones."""
    await night.proved()
    sample = (await night.read())[1]
    liar, unseen = min(sample), max(set(range(PAGES)) - sample)
    for number in (liar, unseen):
        night.write(number, "A new text with an old date.")
    report, requested = await night.read()
    assert requested == set(range(PAGES))
    assert report.counts["changed"] == 2
    assert f"all pages were requested, because {night.site.url}/p{liar} changed and its lastmod didn't" in report.text
    for number in range(PROOFS):
        night.change(number, 3)
    await night.read()
    assert (await night.read(dry_run=True))[1] == set(range(PAGES))


async def test_dates_that_prove_nothing_are_not_believed(night: Night) -> None:
    """Those of a build, of today, or new for many pages without a change; nor is a sample that can't be read."""
    await night.read()
    honest = dict(night.dates)
    for number in range(PROOFS):
        night.change(number, 1)
    changed = dict(night.dates)
    for dates in (
        dict.fromkeys(honest, "2024-03-01"),
        {number: time.strftime("%Y-%m-%d") for number in honest} | {0: "2024-01-01"},
        changed | dict.fromkeys(range(PROOFS, PAGES), "2024-02-20"),
    ):
        night.dates = dates
        await night.read()
        assert (await night.read(dry_run=True))[1] == set(range(PAGES))
    for number in range(PROOFS):
        night.change(number, 4)
    await night.read()
    sample = (await night.read())[1]
    assert len(sample) == LEAST
    for number in range(PAGES):
        night.site.put(f"/p{number}", "closed", "text/plain", status=403)
    with pytest.raises(NotPublished, match="No page could be read"):
        await night.read()
    assert len({path for path, _, _ in night.site.log if path.startswith("/p")}) == PAGES


@pytest.mark.parametrize("kind", ["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
async def test_a_run_in_which_no_text_changed_writes_no_record_although_pages_have_no_validators(
    kind: str, tmp_path: Path
) -> None:
    """Only the history of runs is: it has the time at which the pages were last read. Copies of pages are no exception."""
    with local_site() as site:
        async with OPENERS[kind](tmp_path) as opener:
            night = Night(site, await opener(), validators=False)
            site.answers["/p1"] = site.answers["/p0"]
            first, _ = await night.read()
            before = await _written(kind, tmp_path, night.store)
            await night.read_days_ago(3)
            old = (await night.pages_as_last_read())["p5"].fetch.last_ok
            second, requested = await night.read()
            assert len(requested) == PAGES
            assert (second.changed, second.published) == (False, first.published)
            assert await _written(kind, tmp_path, night.store) == before
            pages = await night.pages_as_last_read()
            assert pages["p1"].derived.same_as == f"{site.url}/p0"
            assert old <= pages["p5"].fetch.last_ok
            (read,) = (one.read for one in (await readable_runs_of(night.store)).sources.values())
            assert time.time() - read < 3600  # it was three days ago before
            night.site.put("/p5", "", status=500)
            await night.read()
            stale = (await night.pages_as_last_read())["p5"]
            assert stale.fetch.last_ok == pages["p5"].fetch.last_ok  # when it was last read, and not when it failed
            assert stale.fetch.stale_since >= stale.fetch.last_ok


async def _written(kind: str, directory: Path, store: Any) -> Any:
    """What differs as soon as anything but the history of runs was written."""
    if kind == "embedded":
        files = (path for path in directory.rglob("*") if path.is_file() and path.name != "runs.json")
        return {path: path.stat().st_mtime_ns for path in files}
    async with httpx.AsyncClient(base_url=store._connection.url, timeout=30) as client:
        found = (await client.get(f"/{store._catalog.name}-*/_stats?level=shards")).json()["indices"]
    pages = {index: told["shards"].values() for index, told in found.items() if index != store._catalog.meta}
    assert pages
    return {index: [shard[0]["seq_no"] for shard in shards] for index, shards in pages.items()}


@pytest.mark.parametrize("days", [0.5, 1, 7, 45])
def test_every_page_is_requested_within_a_cycle_however_often_runs_are(
    days: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice a day, each night, each week, and less often than a cycle; few are requested in each run."""
    source = Source(url="https://docs.example.org/sitemap.xml")
    entries = [Entry(f"https://docs.example.org/{n}", source.url, source, "2024-01-01") for n in range(1000)]
    now = time.time()
    known = {source.url: SourceRuns(now, PROOFS)}
    seen = set[str]()
    for number in range(1, 2 + int(CYCLE / days)):
        monkeypatch.setattr(time, "time", lambda number=number: now + number * days * 24 * 3600)
        lastmods = Lastmods(known)
        requested, held = lastmods.divided(entries, lambda _: True)
        assert len(requested) + len(held) == len(entries)
        assert len(requested) < (70 + 35 * days if days < CYCLE else 1001)
        assert all(map(lastmods.holds, held))
        seen |= {entry.url for entry in requested}
        known = dict(lastmods.learned([source.url], [SourceRecord({}, (source.url,))]))
    assert len(seen) == len(entries)
