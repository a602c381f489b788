"""The site fails: what serves afterwards, what the run says, and that the next run is whole. On both stores."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.core.errors import CrawlError, NotPublished, RunRefused, SitemapError
from ingestion.report import EXIT_OK, EXIT_WITH_FAILURES
from tests.faults.rig import PAGES, Rig
from tests.ingestion.local_site import LocalSite

BROKEN = 3
HTML = "<html><body><h1>We'll be back</h1><p>This page can't be found. Try the home page.</p></body></html>"


@dataclass(frozen=True)
class SiteFault:
    """How the site fails, the error, and what its message says."""

    breaks: Callable[[Rig], None]
    error: type[CrawlError]
    says: str


def _sitemap(body: str, media_type: str = "application/xml", status: int = 200) -> Callable[[Rig], None]:
    return lambda rig: rig.site.put("/sitemap.xml", body, media_type, status=status)


def _pages(body: str, status: int = 200) -> Callable[[Rig], None]:
    def put(rig: Rig) -> None:
        for number in range(rig.pages):
            rig.site.put(f"/gauge-{number}", body, status=status)

    return put


def _mixed(rig: Rig) -> None:
    """Some leave, some become stale, one is changed: nothing of that is kept of a run that is refused."""
    for number in range(1, rig.pages):
        rig.site.put(f"/gauge-{number}", "", status=404 if number % 2 else 500)


SITES = {
    "sitemap 500": SiteFault(_sitemap("", status=500), SitemapError, r"sitemap\.xml can't be read: answered 500"),
    "sitemap without a body": SiteFault(_sitemap(""), SitemapError, "Nothing was changed"),
    "sitemap empty": SiteFault(_sitemap("<urlset></urlset>"), SitemapError, "lists no page"),
    "sitemap is html": SiteFault(_sitemap(HTML, "text/html"), SitemapError, "Nothing was changed"),
    "sitemap -60 %": SiteFault(
        lambda rig: rig.list_pages(PAGES * 2 // 5), RunRefused, "8 of 12 pages of .* would be lost: no longer listed"
    ),
    "pages are one soft 404": SiteFault(_pages(HTML), RunRefused, "12 pages .*the same"),
    "pages 404": SiteFault(_pages("", 404), NotPublished, "answered 404"),
    "half of the pages 404, others 500": SiteFault(_mixed, RunRefused, "of 12 pages .*answered 404"),
    "pages 500": SiteFault(_pages("", 500), NotPublished, "answered 500"),
}


@pytest.mark.parametrize("fault", SITES.values(), ids=SITES)
async def test_a_site_that_fails_changes_nothing(rig: Rig, fault: SiteFault):
    """The run ends with an error that names it, and the index answers as before."""
    rig.write_site("state1")
    await rig.run()
    before, records = await rig.content(), await rig.records()
    rig.write_site("state2")
    fault.breaks(rig)
    with pytest.raises(fault.error, match=fault.says):
        await rig.run()
    assert await rig.content() == before
    assert await rig.records() == records
    assert await rig.answers() == {"state1"}
    rig.write_site("state2")
    assert (await rig.run()).exit_code == EXIT_OK
    assert await rig.answers() == {"state2"}
    assert len(await rig.content()) == rig.pages
    assert rig.place.left_over() == []


@dataclass(frozen=True)
class PageFault:
    """How one page fails, what becomes of it in the report, the exit code, and whether it stays in the index."""

    breaks: Callable[[LocalSite, str], None]
    outcome: str
    says: str
    code: int = EXIT_OK
    stays: bool = True


NOISE = random.Random(5).randbytes(5000)
PAGE_FAULTS = {
    "404": PageFault(lambda site, path: site.put(path, "", status=404), "removed", "answered 404", stays=False),
    "410": PageFault(lambda site, path: site.put(path, "", status=410), "removed", "answered 410", stays=False),
    "500": PageFault(lambda site, path: site.put(path, "", status=500), "failed", "answered 500", EXIT_WITH_FAILURES),
    "slow": PageFault(
        lambda site, path: site.put(path, HTML, delay=1.3), "failed", "no whole answer within 1 s", EXIT_WITH_FAILURES
    ),
    "endless": PageFault(lambda site, path: site.put(path, "<p>on " * 99, endless=True), "skipped", "larger than"),
    "binary": PageFault(lambda site, path: site.put(path, NOISE, "application/zip"), "skipped", "not text"),
    "binary as html": PageFault(lambda site, path: site.put(path, NOISE, "text/html"), "skipped", ""),
}


@pytest.mark.parametrize("fault", PAGE_FAULTS.values(), ids=PAGE_FAULTS)
async def test_a_page_that_fails_stays_as_it_was_or_leaves(rig: Rig, fault: PageFault):
    """404 and 410 take it out; with all else its older state answers. The others are brought up to date."""
    rig.write_site("state1")
    await rig.run()
    before = await rig.content()
    rig.write_site("state2")
    url = f"{rig.site.url}/gauge-{BROKEN}"
    fault.breaks(rig.site, f"/gauge-{BROKEN}")
    report = await rig.run(crawl_timeout=1 if "within 1 s" in fault.says else 60)
    told = next(page for page in report.pages if page.url == url)
    assert (told.outcome, told.kept, report.exit_code) == (fault.outcome, fault.stays, fault.code)
    assert fault.says in told.reason
    assert told.reason
    after = await rig.content()
    assert after.pop(url, None) == (before[url] if fault.stays else None)
    assert len(after) == rig.pages - 1
    assert all("state2" in said for texts in after.values() for said in texts)
    assert await rig.answers() == {"state1", "state2"} - (set() if fault.stays else {"state1"})
    rig.write_page(BROKEN, "state2")
    assert (await rig.run()).exit_code == EXIT_OK
    assert await rig.answers() == {"state2"}
    assert len(await rig.content()) == rig.pages
    assert rig.place.left_over() == []
