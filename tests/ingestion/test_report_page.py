"""The report as a page: whole, without the network, and safe whatever a site calls its pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from shutil import which

import pytest

from app.core.errors import SettingsError
from app.core.generation import GenerationInfo, Recipe
from ingestion.report import PageReport, Report
from ingestion.report_page import html, write_page

INFO = GenerationInfo(7, Recipe("fake", 64, "m", "a"), "2025-11-01T10:00:00+00:00", ("cs", "en"), 315, 2900)
HOSTILE = "https://h.org/\"><img src=x onerror=document.title='bad'><script>document.title='bad'</script>"
BASE = "https://docs.example.org/"


@pytest.fixture
def report() -> Report:
    """One of each kind, and what a hostile site would like to be shown."""
    pages = [
        PageReport(f"{BASE}new", "new", language="en", chunks=3, redirects=(f"{BASE}old",), seconds=0.1),
        PageReport(f"{BASE}odd", "changed", language="cs", note="the text is cs, the address says en", chunks=2),
        PageReport(f"{BASE}slow", "unchanged", chunks=40, seconds=7.3),
        PageReport(f"{BASE}gone", "removed", "answered 410"),
        PageReport(f"{BASE}bad", "failed", "answered 500", kept=True, stale_since="2025-11-02T03:10:00+00:00"),
        PageReport(HOSTILE, "failed", HOSTILE, note=HOSTILE, language=HOSTILE, redirects=(HOSTILE,)),
        PageReport("javascript:document.title='bad'", "skipped", "</script><script>document.title='bad'</script>"),
    ]
    pages += [PageReport(f"{BASE}{n}.png", "skipped", "is image/png, not text") for n in range(60)]
    return Report((HOSTILE,), pages, INFO, 1, 4, 9.2, warnings=[HOSTILE], changed=True)


class Elements(HTMLParser):
    """Counts elements and collects what they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]


def test_nothing_of_a_site_becomes_markup(report: Report) -> None:
    """The only script is ours, links lead to web addresses only, nothing is loaded, no handler is set."""
    found = Elements(html(report))
    assert found.tags.count("script") == 1
    assert "img" not in found.tags
    assert not [name for _, name, _ in found.attributes if name.startswith("on") or name in ("src", "srcset", "style")]
    assert {tag for tag, name, _ in found.attributes if name == "href"} == {"a"}
    assert all(value.startswith(("https://", "http://")) for _, name, value in found.attributes if name == "href")
    assert "default-src 'none'" in html(report)


def test_each_kind_has_its_part_and_the_table_has_all(report: Report) -> None:
    """Many pages of one reason are summed up; long lists are cut, the table is not."""
    page = html(report)
    for title in (
        "To know",
        "Failed",
        "Removed",
        "Changed",
        "New",
        "Skipped",
        "Why skipped",
        "Stale: older state kept",
        "Language to check",
        "Redirects",
        "Slowest pages",
        "Biggest pages",
    ):
        assert f"<summary>{title} " in page, title
    assert "<td>is image/png, not text</td><td>60</td>" in page
    assert "and 11 more, in the table below" in page
    assert len(re.findall("<tr>", page.partition('id="all"')[2])) == len(report.pages) + 1
    assert "7.3 s" in page
    assert "2025-11-02" in page


def test_an_empty_report_is_a_page_too() -> None:
    """Without pages and without a generation."""
    page = html(Report(("s",)))
    assert "Nothing was published" in page
    assert "<details" not in page


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Not a traceback at the end of a run."""
    with pytest.raises(SettingsError, match=re.escape(str(tmp_path))):
        write_page(Report(("s",)), tmp_path)


@pytest.mark.server
def test_in_a_browser_it_searches_sorts_and_asks_for_nothing(report: Report, tmp_path: Path) -> None:
    """In Chromium, from a file: our script runs under the page's own policy, and no other does."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = which("chromium") or which("google-chrome")
    if program is None:
        pytest.skip("no Chromium is installed here")
    file = tmp_path / "report.html"
    write_page(report, file)
    asked: list[str] = []
    said: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, chromium_sandbox=False)
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.goto(file.as_uri())
        assert page.inner_text("#shown") == "67 pages"
        page.fill("#find", "PNG text")
        assert page.inner_text("#shown") == "60 pages"
        page.select_option("#outcome", "failed")
        assert page.inner_text("#shown") == "0 pages"
        page.fill("#find", "")
        assert page.inner_text("#shown") == "2 pages"
        page.click("#all th:nth-child(4)")
        page.select_option("#outcome", "")
        assert page.inner_text("#all tbody tr:last-child td:nth-child(4)") == "40"
        assert page.title().startswith("Indexing report")
        browser.close()
    assert (asked, said) == ([file.as_uri()], [])
