"""The report of a run as one page for the browser, that needs no network and no other file."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path

from app.core.errors import SettingsError
from app.core.masking import masked
from app.report import render
from ingestion.report import Report

LONGEST = 50
TOP = 15
SLOW = 1.0
"""Seconds from which on a page is slow."""


def write_page(report: Report, file: Path) -> None:
    """Write the page. Raises `SettingsError` where the file can't be written."""
    try:
        file.write_text(html(report), encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"The report can't be written to {file}: {error.strerror}. Name another file.") from error


def html(report: Report) -> str:
    """The whole document. Everything that a site said is escaped, and no script of its runs."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    embed = "texts to embed" if report.dry_run else "texts embedded"
    stale = sum(1 for page in report.pages if page.kept)
    slowest = sorted((page for page in report.pages if page.seconds >= SLOW), key=lambda page: -page.seconds)
    biggest = sorted((page for page in report.pages if page.chunks > 1), key=lambda page: -page.chunks)
    return render(
        __name__,
        "indexing.html",
        script="script.js",
        masked=masked,
        heading=f"Indexing report {now}",
        lead=f"{report.seconds:.1f} s",
        report=report,
        figures=[
            (n, str(c), "")
            for n, c in (
                *report.counts.items(),
                ("stale", stale),
                *_other_languages(report),
                (embed, report.embedded_texts),
            )
        ],
        reasons=lambda outcome: _reasons(report, outcome),
        slowest=slowest[:TOP],
        biggest=biggest[:TOP],
        longest=LONGEST,
        top=TOP,
    )


def _other_languages(report: Report) -> list[tuple[str, int]]:
    return [(f"not indexed, in {code}", count) for code, count in report.other_languages.items()]


def _reasons(report: Report, outcome: str) -> list[tuple[str, int]]:
    """The reasons with their numbers, where there are many pages and fewer reasons."""
    pages = [page for page in report.pages if page.outcome == outcome]
    counted = Counter(page.reason for page in pages if page.reason)
    return [] if len(pages) <= LONGEST or len(counted) > LONGEST else counted.most_common()
